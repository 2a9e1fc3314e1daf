"""Plugins that rely on what a process remembers, or that are lost when it is killed."""

# ruff: noqa: N801 - classes are named after checks, and after attributes of the plugin that they break

import os

from complete_plugin import NAME, CompletePlugin, Volume, handle_of

from volumehost import ReconstructedVolume, Spec, errors, hookimpl, sdk


class remembering(CompletePlugin):
    @hookimpl
    def init(self, host):
        super().init(host)
        self.mounted = {}


class a_new_plugin_tears_down_what_an_old_one_set_up(remembering):
    says = "after a restart and tear_down there is left: a mount at"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            self.plugin.mounted[self.uid] = directory

        def tear_down_at(self, directory):
            if self.plugin.mounted.pop(self.uid, None):
                super().tear_down_at(directory)


class a_new_plugin_sets_up_again_what_an_old_one_set_up(remembering):
    says = "set_up after a restart mounted again"

    class volume(Volume):
        def set_up_at(self, directory, args):
            if self.uid not in self.plugin.mounted:
                sdk.make_directories(directory)
                device = self.plugin.device_mounts(self.plugin).path_of(self.handle)
                self.host.get_mounter().mount(device, directory, "", ["bind"])
            self.plugin.mounted[self.uid] = directory


class a_new_plugin_sets_up_again_what_an_old_one_set_up__content(CompletePlugin):
    says = "after a restart and set_up the file"

    class volume(Volume):
        def set_up(self, args):
            super().set_up(args)
            if args.reconstructed_volume:
                for name in os.listdir(self.path):
                    os.unlink(f"{self.path}/{name}")


class the_spec_can_be_rebuilt_from_the_directory(CompletePlugin):
    says = "the rebuilt spec is named 'vol-1'; the directory is 'work'"

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        return super().construct_volume_spec("vol-1", mount_path)


class the_spec_can_be_rebuilt_from_the_directory__not_its_own(CompletePlugin):
    says = "the rebuilt spec has the source none, which the plugin does not support, and is not marked as incomplete"

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        from volumehost.api.objects import Volume as ApiVolume

        return ReconstructedVolume(Spec.from_volume(ApiVolume(name=volume_name)))


class the_spec_can_be_rebuilt_from_the_directory__a_spec(CompletePlugin):
    says = "not a ReconstructedVolume"

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        return super().construct_volume_spec(volume_name, mount_path).spec


class a_complete_rebuilt_spec_names_the_same_storage(CompletePlugin):
    says = "the rebuilt spec has the volume name 'work', the original 'vol-1'"

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        from volumehost.api.objects import FlexVolumeSource
        from volumehost.api.objects import Volume as ApiVolume

        volume = ApiVolume(name=volume_name, flex_volume=FlexVolumeSource(driver=NAME))
        return ReconstructedVolume(Spec.from_volume(volume), complete=True)


class rebuilding_survives_what_is_not_mounted(CompletePlugin):
    says = "construct_volume_spec raised StopIteration"

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        next(mount for mount in self.host.get_mounter().list_mounts() if mount.path == mount_path)
        return super().construct_volume_spec(volume_name, mount_path)


class rebuilding_survives_what_is_not_mounted__makes(CompletePlugin):
    says = "after construct_volume_spec of what is not there there is left: the directory"

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        os.makedirs(mount_path, exist_ok=True)
        return super().construct_volume_spec(volume_name, mount_path)


class the_volume_name_is_the_same_in_another_process(CompletePlugin):
    says = "in this process, and"

    @hookimpl
    def get_volume_name(self, spec):
        return f"{handle_of(spec)}-{os.getpid()}"


class set_up_killed_at_any_step_can_be_repeated(CompletePlugin):
    says = "set_up in a new process raised FileExistsError"

    class volume(Volume):
        def set_up_at(self, directory, args):
            if not self.is_mounted(directory):
                os.makedirs(os.path.dirname(directory), exist_ok=True)
                os.mkdir(directory)
            super().set_up_at(directory, args)


class set_up_killed_at_any_step_can_be_repeated__not_mounted(CompletePlugin):
    says = "set_up and tear_down in new processes there is left"

    class volume(Volume):
        def set_up_at(self, directory, args):
            if not os.path.exists(directory):  # as if a directory were a mount
                super().set_up_at(directory, args)
            else:
                open(f"{directory}/scratch", "w").close()

        def tear_down_at(self, directory):
            if self.is_mounted(directory):
                super().tear_down_at(directory)


class set_up_killed_at_any_step_can_be_torn_down(CompletePlugin):
    says = "and tear_down in a new process there is left"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            open(f"{self.plugin.array}/{self.uid}-complete", "w").close()

        def tear_down_at(self, directory):
            if os.path.exists(f"{self.plugin.array}/{self.uid}-complete"):
                super().tear_down_at(directory)


class tear_down_killed_at_any_step_can_be_repeated(CompletePlugin):
    says = "and tear_down in a new process there is left"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            open(f"{self.plugin.array}/{self.uid}-there", "w").close()

        def tear_down_at(self, directory):
            if os.path.exists(f"{self.plugin.array}/{self.uid}-there"):
                os.unlink(f"{self.plugin.array}/{self.uid}-there")
                super().tear_down_at(directory)


class tear_down_killed_at_any_step_can_be_repeated__raises(CompletePlugin):
    says = "tear_down in a new process raised"

    class volume(Volume):
        def tear_down_at(self, directory):
            if not os.path.exists(directory):
                return
            if not self.is_mounted(directory):
                raise errors.UnmountError("it is not mounted", subject=directory)
            super().tear_down_at(directory)
