"""Plugins that make, delete or recycle volumes wrongly."""

# ruff: noqa: N801 - classes are named after checks, and after attributes of the plugin that they break

import os
from dataclasses import replace

from complete_plugin import CompletePlugin, Deleter, Provisioner, Volume

from volumehost import hookimpl


class a_provisioned_volume_is_what_was_asked_for(CompletePlugin):
    says = "its capacity is 1Mi, less than the 64Mi of the claim"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            made = super().provision(selected_node, allowed_topologies)
            made.spec.capacity["storage"] = "1Mi"
            return made


class a_provisioned_volume_is_what_was_asked_for__name(CompletePlugin):
    says = "it is named 'mine', not 'pvc-"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            made = super().provision(selected_node, allowed_topologies)
            made.metadata.name = "mine"
            return made


class a_provisioned_volume_is_what_was_asked_for__modes(CompletePlugin):
    says = "it lacks the access modes ['ReadWriteOnce'] of the claim"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            made = super().provision(selected_node, allowed_topologies)
            made.spec.access_modes = []
            return made


class a_provisioned_volume_is_what_was_asked_for__policy(CompletePlugin):
    says = "its reclaim policy is 'Retain', not 'Delete'"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            made = super().provision(selected_node, allowed_topologies)
            made.spec.persistent_volume_reclaim_policy = "Retain"
            return made


class a_provisioned_volume_is_what_was_asked_for__foreign(CompletePlugin):
    says = "can_support is false for it"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            made = super().provision(selected_node, allowed_topologies)
            made.spec.flex_volume.driver = "example.com/other"
            return made


class a_provisioned_volume_is_what_was_asked_for__kind(CompletePlugin):
    says = "not a PersistentVolume"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            return super().provision(selected_node, allowed_topologies).spec


class provisioned_volumes_are_distinct(CompletePlugin):
    says = "both have the volume name 'the-only-one'"

    @hookimpl
    def new_provisioner(self, options):
        return super().new_provisioner(replace(options, pv_name="the-only-one"))


class a_provisioned_volume_keeps_its_content(CompletePlugin):
    says = "after tear_down and set_up for another pod the file"

    class volume(Volume):
        def tear_down_at(self, directory):
            if os.path.exists(directory):
                for name in os.listdir(directory):
                    os.unlink(f"{directory}/{name}")
            super().tear_down_at(directory)


class a_claim_for_a_block_volume_is_honoured_or_refused(CompletePlugin):
    says = "it made a volume with volumeMode Filesystem"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            made = super().provision(selected_node, allowed_topologies)
            made.spec.volume_mode = None
            return made


class a_claim_for_a_block_volume_is_honoured_or_refused__not_in_words(CompletePlugin):
    says = "it raised ValueError: Block, not OperationNotSupportedError"

    class provisioner(Provisioner):
        def provision(self, selected_node=None, allowed_topologies=()):
            if self.options.pvc.spec.volume_mode == "Block":
                raise ValueError("Block")
            return super().provision(selected_node, allowed_topologies)


class deleting_takes_the_storage_away(CompletePlugin):
    says = "after delete there still is"

    class deleter(Deleter):
        def delete(self):
            pass


class deleting_takes_the_storage_away__twice(CompletePlugin):
    says = "delete of what is gone already raised FileNotFoundError"

    class deleter(Deleter):
        def delete(self):
            os.stat(self.get_path())
            super().delete()


class deleting_what_is_in_use_is_refused_or_done(CompletePlugin):
    says = "delete of a mounted volume raised RuntimeError: busy, not DeletedVolumeInUseError"

    class deleter(Deleter):
        def delete(self):
            raise RuntimeError("busy")


class deleting_what_is_not_its_own_is_refused_in_words(CompletePlugin):
    says = "new_deleter for a spec with neither volume nor PersistentVolume returned a deleter"

    @hookimpl
    def new_deleter(self, spec):
        return self.deleter(self, spec.name())


class recycling_empties_the_volume(CompletePlugin):
    says = "after recycle"

    @hookimpl
    def recycle(self, pv_name, spec, event_recorder):
        event_recorder("Normal", "scrubbed")
