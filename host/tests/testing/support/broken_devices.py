"""Plugins that attach, mount devices, map blocks or resize wrongly."""

# ruff: noqa: N801 - classes are named after checks, and after attributes of the plugin that they break

import os
import uuid

from complete_plugin import Attachments, BlockVolume, CompletePlugin, DeviceMounts

from volumehost import Spec, hookimpl, sdk


class questions_about_the_device_are_answered_with_yes_or_no(CompletePlugin):
    says = "verify_exhausted_resource returned 0, not a bool"

    @hookimpl
    def verify_exhausted_resource(self, spec):
        return 0


class attaching_twice_gives_the_same_device(CompletePlugin):
    says = "attach returned"

    class attachments(Attachments):
        def attach(self, spec, node_name):
            handle = self.plugin.get_volume_name(spec)
            again = os.path.exists(self.file_of(handle, node_name))
            return super().attach(spec, node_name) + ("/." if again else "")


class attaching_twice_gives_the_same_device__not_there(CompletePlugin):
    says = "wait_for_attach returned '/dev/does-not-exist', where there is nothing"

    class attachments(Attachments):
        def wait_for_attach(self, spec, device_path, pod, timeout):
            return "/dev/does-not-exist"


class volumes_are_attached_tells_the_truth(CompletePlugin):
    says = "after detach volumes_are_attached says True"

    class attachments(Attachments):
        def volumes_are_attached(self, specs, node_name):
            return dict.fromkeys(specs, True)


class volumes_are_attached_tells_the_truth__nothing(CompletePlugin):
    says = "after attach volumes_are_attached says None"

    class attachments(Attachments):
        def volumes_are_attached(self, specs, node_name):
            return {}


class a_new_plugin_detaches_what_an_old_one_attached(CompletePlugin):
    says = "after detach volumes_are_attached says True"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.attached = set()

    class attachments(Attachments):
        def attach(self, spec, node_name):
            self.plugin.attached.add(self.plugin.get_volume_name(spec))
            return super().attach(spec, node_name)

        def detach(self, volume_name, node_name):
            if volume_name in self.plugin.attached:
                super().detach(volume_name, node_name)


class a_new_plugin_detaches_what_an_old_one_attached__twice(CompletePlugin):
    says = "the second detach raised FileNotFoundError"

    class attachments(Attachments):
        def detach(self, volume_name, node_name):
            os.unlink(self.file_of(volume_name, node_name))


class the_device_mount_path_is_the_plugins_own(CompletePlugin):
    says = "which is not below"

    class device_mounts(DeviceMounts):
        def path_of(self, handle):
            return f"{self.host.root_dir}/mounts/{handle}"


class the_device_mount_path_is_the_plugins_own__restart(CompletePlugin):
    says = "after a restart"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.birth = uuid.uuid4()

    class device_mounts(DeviceMounts):
        def path_of(self, handle):
            return f"{super().path_of(handle)}-{self.plugin.birth}"


class mounting_the_device_twice_is_harmless(CompletePlugin):
    says = "the second mount_device left"

    class device_mounts(DeviceMounts):
        def mount_device(self, spec, device_path, device_mount_path, args):
            sdk.make_directories(device_mount_path)
            self.host.get_mounter().mount(device_path, device_mount_path, "", ["bind"])


class mounting_the_device_twice_is_harmless__not_mounted(CompletePlugin):
    says = "after mount_device nothing is mounted at"

    class device_mounts(DeviceMounts):
        def mount_device(self, spec, device_path, device_mount_path, args):
            sdk.make_directories(device_mount_path)


class a_new_plugin_unmounts_the_device_of_an_old_one(CompletePlugin):
    says = "after unmount_device there still is"

    class device_mounts(DeviceMounts):
        def unmount_device(self, device_mount_path):
            self.host.get_mounter().unmount(device_mount_path)


class a_new_plugin_unmounts_the_device_of_an_old_one__twice(CompletePlugin):
    says = "the second unmount_device raised FileNotFoundError"

    class device_mounts(DeviceMounts):
        def unmount_device(self, device_mount_path):
            self.host.get_mounter().unmount(device_mount_path)
            os.rmdir(device_mount_path)


class a_new_plugin_unmounts_the_device_of_an_old_one__memory(CompletePlugin):
    says = "after unmount_device there is left"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.mounted = set()

    class device_mounts(DeviceMounts):
        def mount_device(self, spec, device_path, device_mount_path, args):
            super().mount_device(spec, device_path, device_mount_path, args)
            self.plugin.mounted.add(device_mount_path)

        def unmount_device(self, device_mount_path):
            if device_mount_path in self.plugin.mounted:
                super().unmount_device(device_mount_path)


class device_mount_refs_are_the_mounts_of_pods(CompletePlugin):
    says = "itself"

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        return [device_mount_path, *super().get_device_mount_refs(device_mount_path)]


class device_mount_refs_are_the_mounts_of_pods__none(CompletePlugin):
    says = "where a pod has the volume"

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        return []


class block_maps_are_where_the_layout_says(CompletePlugin):
    says = "get_pod_device_map_path is"

    class block_volume(BlockVolume):
        def get_pod_device_map_path(self):
            return self.host.get_pod_volume_device_dir(self.uid, "example.com/other"), self.name


class block_maps_are_where_the_layout_says__global(CompletePlugin):
    says = "get_global_map_path is"

    class block_volume(BlockVolume):
        def get_global_map_path(self, spec):
            return f"/var/lib/{self.name}"


class block_volumes_come_and_go(CompletePlugin):
    says = "FileExistsError"

    class block_volume(BlockVolume):
        def map_pod_device(self):
            path = f"{self.get_staging_path()}/{self.uid}"
            open(path, "x").close()
            return path


class block_volumes_come_and_go__twice(CompletePlugin):
    says = "the second tear_down_device raised FileNotFoundError"

    class block_volume(BlockVolume):
        def tear_down_device(self, map_path, device_path):
            os.rmdir(self.get_staging_path())


class block_volumes_come_and_go__nothing(CompletePlugin):
    says = "the device for the pod is '/dev/does-not-exist', where there is nothing"

    class block_volume(BlockVolume):
        def map_pod_device(self):
            return "/dev/does-not-exist"


class block_metrics_are_supported_or_not(CompletePlugin):
    says = "supports_metrics returned None"

    class block_volume(BlockVolume):
        def supports_metrics(self):
            pass


class the_block_spec_can_be_rebuilt(CompletePlugin):
    says = "the rebuilt spec has volumeMode Filesystem"

    @hookimpl
    def construct_block_volume_spec(self, pod_uid, volume_name, map_path):
        spec = super().construct_block_volume_spec(pod_uid, volume_name, map_path)
        spec.persistent_volume.spec.volume_mode = "Filesystem"
        return spec


class the_block_spec_can_be_rebuilt__foreign(CompletePlugin):
    says = "can_support is false for the rebuilt spec"

    @hookimpl
    def construct_block_volume_spec(self, pod_uid, volume_name, map_path):
        spec = super().construct_block_volume_spec(pod_uid, volume_name, map_path)
        spec.persistent_volume.spec.flex_volume.driver = "example.com/other"
        return Spec.from_persistent_volume(spec.persistent_volume, read_only=False)


class requires_fs_resize_is_answered_with_yes_or_no(CompletePlugin):
    says = "requires_fs_resize returned 1, not a bool"

    @hookimpl
    def requires_fs_resize(self):
        return 1


class expanding_gives_at_least_what_was_asked_for(CompletePlugin):
    says = "asked for 134217728 bytes it returned 67108864"

    @hookimpl
    def expand_volume_device(self, spec, new_size, old_size):
        return old_size


class expanding_gives_at_least_what_was_asked_for__text(CompletePlugin):
    says = "expand_volume_device returned '128Mi', not a number of bytes"

    @hookimpl
    def expand_volume_device(self, spec, new_size, old_size):
        return "128Mi"


class growing_on_the_node_keeps_the_content(CompletePlugin):
    says = "after node_expand the file"

    @hookimpl
    def node_expand(self, resize_options):
        for name in os.listdir(resize_options.device_mount_path):
            os.unlink(f"{resize_options.device_mount_path}/{name}")
        return True


class growing_on_the_node_keeps_the_content__nothing(CompletePlugin):
    says = "node_expand returned None, not a bool"

    @hookimpl
    def node_expand(self, resize_options):
        pass


class resizing_while_the_pod_runs_keeps_the_content(CompletePlugin):
    says = "after resize_ephemeral_volume to 134217728 bytes the file"

    @hookimpl
    def resize_ephemeral_volume(self, spec, pod, new_size):
        path = self.host.get_pod_volume_dir(pod.metadata.uid, self.get_plugin_name(), spec.name())
        for name in os.listdir(path):
            os.unlink(f"{path}/{name}")


class a_size_that_cannot_be_is_refused_or_keeps_the_content(CompletePlugin):
    says = "resizing to -1 bytes raised ValueError: -1, which is no VolumeHostError"

    @hookimpl
    def resize_ephemeral_volume(self, spec, pod, new_size):
        if new_size is not None and new_size < 0:
            raise ValueError(new_size)
