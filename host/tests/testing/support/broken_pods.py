"""Plugins whose pods get in each other's way, and that measure, own or refresh volumes wrongly."""

# ruff: noqa: N801 - classes are named after checks, and after attributes of the plugin that they break

import os
import threading
import time

from complete_plugin import CompletePlugin, Volume

from volumehost import VolumeMetrics, errors, hookimpl


class a_pod_that_goes_does_not_disturb_another(CompletePlugin):
    says = "after tear_down of the other pod's volume"

    class volume(Volume):
        def tear_down_at(self, directory):
            for path in self.plugin.get_device_mount_refs(
                f"{self.host.get_plugin_dir(self.plugin.get_plugin_name())}/mounts/vol-1"
            ):
                super().tear_down_at(path)
            super().tear_down_at(directory)


class pods_at_the_same_time_do_not_disturb_each_other(CompletePlugin):
    says = "set_up for 8 pods at the same time raised RuntimeError: somebody else is at it"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.busy, self.met = threading.Lock(), threading.Event()

    class volume(Volume):
        def set_up_at(self, directory, args):
            if not self.plugin.busy.acquire(blocking=False):
                self.plugin.met.set()
                raise RuntimeError("somebody else is at it")
            self.plugin.met.wait(5)
            super().set_up_at(directory, args)
            self.plugin.busy.release()


class many_pods_can_use_it(CompletePlugin):
    says = "FailedPreconditionError: 32 pods are enough"

    class volume(Volume):
        def set_up_at(self, directory, args):
            super().set_up_at(directory, args)
            if len(os.listdir(self.host.get_pods_dir())) > 32:
                raise errors.FailedPreconditionError("32 pods are enough")


class metrics_are_sensible_or_not_supported(CompletePlugin):
    says = "used is 20, more than the capacity 10"

    class volume(Volume):
        def get_metrics(self):
            return VolumeMetrics(time=time.time(), used=20, capacity=10)


class metrics_are_sensible_or_not_supported__time(CompletePlugin):
    says = "time is 0.0, not the seconds since the epoch at which measuring began"

    class volume(Volume):
        def get_metrics(self):
            return VolumeMetrics(time=0.0, used=10)


class metrics_are_sensible_or_not_supported__number(CompletePlugin):
    says = "used is 10.5"

    class volume(Volume):
        def get_metrics(self):
            return VolumeMetrics(time=time.time(), used=10.5)


class metrics_are_sensible_or_not_supported__kind(CompletePlugin):
    says = "get_metrics of the mounter returned {'used': 10}, not VolumeMetrics"

    class volume(Volume):
        def get_metrics(self):
            return {"used": 10}


class metrics_of_what_is_gone_raise_from_the_tree(CompletePlugin):
    says = "get_metrics of the mounter, after tear_down, raised FileNotFoundError"

    class volume(Volume):
        def get_metrics(self):
            return VolumeMetrics(time=time.time(), used=os.statvfs(self.path).f_blocks)


class the_group_of_the_pod_owns_a_managed_volume(CompletePlugin):
    says = "belongs to group 0, not to fsGroup 2000"

    class volume(Volume):
        def set_up(self, args):
            super().set_up(args)
            os.chown(self.path, -1, 0)


class the_group_of_the_pod_owns_a_managed_volume__mode(CompletePlugin):
    says = "too little for the group"

    class volume(Volume):
        def set_up(self, args):
            super().set_up(args)
            os.chmod(self.path, 0o2700)


class the_group_of_the_pod_owns_a_managed_volume__setgid(CompletePlugin):
    says = "no setgid bit, so new files have another group"

    class volume(Volume):
        def set_up(self, args):
            super().set_up(args)
            os.chmod(self.path, 0o770)


class a_refresh_keeps_the_volume(CompletePlugin):
    says = "the refresh changed the mounts"

    class volume(Volume):
        def set_up(self, args):
            if args.is_remount:
                device = self.plugin.device_mounts(self.plugin).path_of(self.handle)
                self.host.get_mounter().mount(device, self.path, "", ["bind"])
            super().set_up(args)


class a_refresh_that_fails_keeps_the_volume(CompletePlugin):
    says = "after a refresh that failed"

    class volume(Volume):
        def set_up(self, args):
            if args.is_remount:
                self.host.get_mounter().unmount(self.path)
            super().set_up(args)
