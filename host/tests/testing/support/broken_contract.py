"""Plugins that break the contract as a whole; each class is named after the check that must notice, ``says`` is how."""

# ruff: noqa: N801, RUF012 - classes are named after checks, and after attributes of the plugin that they break

from complete_plugin import CompletePlugin

from volumehost import hookimpl


class it_loads(CompletePlugin):
    says = "can_support takes an argument 'volume' that the hook does not have"

    @hookimpl
    def can_support(self, volume):
        return True


class it_loads__half_an_interface(CompletePlugin):
    says = "it is half of BlockVolumePlugin (it has new_block_volume_unmapper, construct_block_volume_spec)"
    new_block_volume_mapper = None


class it_loads__init_that_fails(CompletePlugin):
    says = "init says no"

    @hookimpl
    def init(self, host):
        raise OSError("init says no")


class its_name_is_constant(CompletePlugin):
    says = "'example.com/complete-initialised', 'example.com/complete', 'example.com/complete-initialised'"

    @hookimpl
    def get_plugin_name(self):
        return super().get_plugin_name() + ("-initialised" if hasattr(self, "host") else "")


class its_name_is_not_reserved(CompletePlugin):
    says = "hosts accept such names from volumehost-csi, volumehost-emptydir, volumehost-hostpath, volumehost-projected"

    @hookimpl
    def get_plugin_name(self):
        return "kubernetes.io/complete"


class it_can_be_shut_down_and_made_again(CompletePlugin):
    says = (
        "shutdown failed: unloading the volume plugin example.com/complete of the embedding program: shutdown failed: "
    )
    running = []

    @hookimpl
    def init(self, host):
        super().init(host)
        if not self.running:
            self.running.append("the one thing that there is for the whole process")

    @hookimpl
    def shutdown(self):
        self.running.remove("the one thing that there is for the whole process")
        self.running.append("nothing")


class access_modes_are_those_of_kubernetes(CompletePlugin):
    says = "get_access_modes returned ['RWX']"

    @hookimpl
    def get_access_modes(self):
        return ["ReadWriteOnce", "RWX"]


class access_modes_are_those_of_kubernetes__string(CompletePlugin):
    says = "get_access_modes returned the string 'ReadWriteOnce'"

    @hookimpl
    def get_access_modes(self):
        return "ReadWriteOnce"
