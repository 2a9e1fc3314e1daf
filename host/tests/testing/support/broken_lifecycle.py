"""Plugins that go wrong in the ordinary life of a volume."""

# ruff: noqa: N801 - classes are named after checks, and after attributes of the plugin that they break

import contextlib
import os
from types import SimpleNamespace

from complete_plugin import NAME, CompletePlugin, DeviceMounts, Volume, handle_of

from volumehost import errors, hookimpl, sdk


class it_can_be_set_up(CompletePlugin):
    says = "not Attributes"

    class volume(Volume):
        def get_attributes(self):
            return SimpleNamespace(read_only=False, managed=False)


class it_can_be_set_up__elsewhere(CompletePlugin):
    says = "which get_path() tells"

    class volume(Volume):
        def get_path(self):
            return f"{self.path}/mount"


class it_can_be_set_up__nowhere(CompletePlugin):
    says = "get_path() of the mounter is empty after set_up"

    class volume(Volume):
        def get_path(self):
            return ""


class its_content_can_be_written(CompletePlugin):
    says = "neither spec nor attributes say read-only: [Errno 30]"

    class volume(Volume):
        def set_up_at(self, directory, args):
            self.read_only = True
            super().set_up_at(directory, args)
            self.read_only = False


class set_up_twice_is_harmless(CompletePlugin):
    says = "the second set_up made 1 more mount(s)"

    class volume(Volume):
        def set_up_at(self, directory, args):
            sdk.make_directories(directory)
            device = self.plugin.device_mounts(self.plugin).path_of(self.handle)
            self.host.get_mounter().mount(device, directory, "", ["bind"])


class set_up_twice_is_harmless__content(CompletePlugin):
    says = "after the second set_up the file"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            for name in os.listdir(directory):
                os.unlink(f"{directory}/{name}")


class set_up_twice_is_harmless__refused(CompletePlugin):
    says = "FailedPreconditionError: it is mounted already"

    class volume(Volume):
        def set_up_at(self, directory, args):
            if os.path.exists(directory):
                raise errors.FailedPreconditionError("it is mounted already")
            super().set_up_at(directory, args)


class tear_down_leaves_nothing(CompletePlugin):
    says = "after tear_down there is left: the directory"

    class volume(Volume):
        def tear_down_at(self, directory):
            if os.path.exists(directory):
                self.host.get_mounter().unmount(directory)


class tear_down_leaves_nothing__files(CompletePlugin):
    says = "plugins/example.com~complete/notes"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            notes = self.host.get_pod_plugin_dir(self.uid, NAME)
            sdk.make_directories(notes)
            open(f"{notes}/notes", "w").close()


class tear_down_leaves_nothing__device(CompletePlugin):
    says = "after tear_down there is left: a mount at"

    class device_mounts(DeviceMounts):
        def unmount_device(self, device_mount_path):
            pass


class tear_down_twice_is_harmless(CompletePlugin):
    says = "the second tear_down raised FileNotFoundError"

    class volume(Volume):
        def tear_down_at(self, directory):
            self.host.get_mounter().unmount(directory)
            os.rmdir(directory)


class tear_down_without_set_up_is_harmless(CompletePlugin):
    says = "tear_down of a volume that was never set up raised SpecError: unknown volume"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            open(f"{self.plugin.array}/{self.uid}", "w").close()

        def tear_down_at(self, directory):
            if not os.path.exists(f"{self.plugin.array}/{self.uid}"):
                raise errors.SpecError("unknown volume", subject=self.name)
            super().tear_down_at(directory)


class it_can_be_set_up_again_after_tear_down(CompletePlugin):
    says = "there is nothing at"

    class volume(Volume):
        def set_up_at(self, directory, args):
            marker = f"{self.plugin.array}/{self.uid}-done"
            if not os.path.exists(marker):
                super().set_up_at(directory, args)
            open(marker, "w").close()


class it_can_be_set_up_at_another_directory(CompletePlugin):
    says = "after set_up_at there is nothing at"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(self.path, args)


class it_can_be_set_up_at_another_directory__not_taken_away(CompletePlugin):
    says = "after tear_down_at there still is"

    class volume(Volume):
        def tear_down_at(self, directory):
            super().tear_down_at(self.path)


class spec_and_pod_are_only_lent(CompletePlugin):
    says = "the pod was changed"

    @hookimpl
    def new_mounter(self, spec, pod):
        pod.metadata.labels["example.com/mounted"] = "yes"
        return super().new_mounter(spec, pod)


class spec_and_pod_are_only_lent__spec(CompletePlugin):
    says = "the spec was changed"

    @hookimpl
    def new_mounter(self, spec, pod):
        mounter = super().new_mounter(spec, pod)
        spec.volume.name = handle_of(spec)
        return mounter


class a_mount_that_fails_raises_from_the_tree_and_leaves_nothing(CompletePlugin):
    says = "set_up succeeded although every mount was refused"

    class volume(Volume):
        def set_up_at(self, directory, args):
            with contextlib.suppress(errors.MountError):
                super().set_up_at(directory, args)

    class device_mounts(DeviceMounts):
        def mount_device(self, spec, device_path, device_mount_path, args):
            with contextlib.suppress(errors.MountError):
                super().mount_device(spec, device_path, device_mount_path, args)


class a_mount_that_fails_raises_from_the_tree_and_leaves_nothing__not_in_words(CompletePlugin):
    says = "set_up raised RuntimeError: mount failed, which is no VolumeHostError"

    class device_mounts(DeviceMounts):
        def mount_device(self, spec, device_path, device_mount_path, args):
            try:
                super().mount_device(spec, device_path, device_mount_path, args)
            except errors.MountError:
                raise RuntimeError("mount failed") from None


class a_mount_that_fails_raises_from_the_tree_and_leaves_nothing__leaves(CompletePlugin):
    says = "after the failed set_up and a tear_down there is left: the directory"

    @hookimpl
    def can_device_mount(self, spec):
        return False

    class volume(Volume):
        def set_up_at(self, directory, args):
            sdk.make_directories(directory)
            self.host.get_mounter().mount(self.plugin.data_of(self.handle), directory, "", ["bind"])

        def tear_down_at(self, directory):
            if self.is_mounted(directory):
                super().tear_down_at(directory)
