"""Plugins that take what nobody means well, show secrets, or leave something in the process."""

# ruff: noqa: N801, RUF012 - classes are named after checks, and after attributes of the plugin that they break

import logging
import os
import subprocess
import threading

from complete_plugin import NAME, CompletePlugin, Volume, source_of

from volumehost import errors, hookimpl

logger = logging.getLogger("complete")


class mounting_what_is_not_its_own_is_refused_in_words(CompletePlugin):
    says = "new_mounter for a spec with neither volume nor PersistentVolume raised AttributeError"

    @hookimpl
    def new_mounter(self, spec, pod):
        return self.volume(self, spec.name(), pod.metadata.uid, source_of(spec).options["handle"])


class own_paths(CompletePlugin):
    """Builds paths itself, without the host's check of names."""

    class volume(Volume):
        def __init__(self, plugin, name, uid, handle="", read_only=False):
            super().__init__(plugin, "checked", "checked", handle, read_only)
            self.name, self.uid = name, uid
            self.path = f"{self.host.get_pods_dir()}/{uid}/volumes/{NAME.replace('/', '~')}/{name}"


class hostile_names_reach_nothing_outside(own_paths):
    says = "with the pod uid '' it made or removed"


class hostile_names_reach_nothing_outside__not_in_words(CompletePlugin):
    says = "raised ValueError: bad name, which is no VolumeHostError"

    @hookimpl
    def new_mounter(self, spec, pod):
        if not spec.name():
            raise ValueError("bad name")
        return super().new_mounter(spec, pod)


class hostile_names_reach_nothing_outside__removes(own_paths):
    says = "it removed"

    class volume(own_paths.volume):
        def set_up_at(self, directory, args):
            raise errors.SpecError("no")

        def tear_down_at(self, directory):
            subprocess.run(["rm", "-rf", directory.replace("\0", "")], check=False)


class nonsense_settings_are_refused_in_words(CompletePlugin):
    says = "set_up with flex_volume.options.handle = '' raised ValueError"

    @hookimpl
    def can_attach(self, spec):
        return False

    @hookimpl
    def can_device_mount(self, spec):
        return False

    @hookimpl
    def new_mounter(self, spec, pod):
        int(source_of(spec).options["handle"].removeprefix("vol-"))
        return super().new_mounter(spec, pod)


class nonsense_settings_are_refused_in_words__leaves(CompletePlugin):
    says = "there is left: the directory"

    @hookimpl
    def new_mounter(self, spec, pod):
        path = self.host.get_pod_volume_dir(pod.metadata.uid, NAME, spec.name())
        os.makedirs(f"{path}/sub", exist_ok=True)
        return super().new_mounter(spec, pod)

    @hookimpl
    def get_volume_name(self, spec):
        return "vol-1"

    @hookimpl
    def can_attach(self, spec):
        return False

    @hookimpl
    def can_device_mount(self, spec):
        return False


class secrets_are_shown_nowhere(CompletePlugin):
    says = "log shows \"complete: mounting with {'handle': 'vol-1', 'password': '***SECRET***'}\""

    @hookimpl
    def new_mounter(self, spec, pod):
        logger.debug("mounting with %s", source_of(spec).options)
        return super().new_mounter(spec, pod)


class secrets_are_shown_nowhere__error(CompletePlugin):
    says = "error of a set_up whose mount was refused shows"

    @hookimpl
    def new_mounter(self, spec, pod):
        mounter = super().new_mounter(spec, pod)
        mounter.password = source_of(spec).options.get("password")
        return mounter

    @hookimpl
    def can_device_mount(self, spec):
        return False

    class volume(Volume):
        def set_up_at(self, directory, args):
            try:
                os.makedirs(directory, exist_ok=True)
                self.host.get_mounter().mount("tmpfs", directory, "tmpfs")
            except errors.MountError as error:
                raise errors.MountError(f"mount -o password={self.password}: {error}") from None


class secrets_are_shown_nowhere__repr(CompletePlugin):
    says = "repr of the mounter shows '<Volume vol-1 ***SECRET***>'"

    @hookimpl
    def new_mounter(self, spec, pod):
        mounter = super().new_mounter(spec, pod)
        mounter.password = source_of(spec).options.get("password")
        return mounter

    class volume(Volume):
        def __repr__(self):
            return f"<Volume {self.handle} {self.password}>"


class secrets_are_shown_nowhere__mount_table(CompletePlugin):
    says = "mount table shows"

    @hookimpl
    def new_mounter(self, spec, pod):
        mounter = super().new_mounter(spec, pod)
        mounter.password = source_of(spec).options.get("password")
        return mounter

    class volume(Volume):
        def set_up_at(self, directory, args):
            os.makedirs(directory, exist_ok=True)
            self.host.get_mounter().mount(f"tmpfs-{self.password}", directory, "tmpfs")


class secrets_are_shown_nowhere__output(CompletePlugin):
    says = "output shows"

    @hookimpl
    def new_mounter(self, spec, pod):
        print(source_of(spec).options)
        return super().new_mounter(spec, pod)


class nothing_is_left_in_the_process(CompletePlugin):
    says = "there is left: thread 'complete-refresher', not a daemon, still running"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.stop = threading.Event()
        threading.Thread(target=self.stop.wait, args=(30,), name="complete-refresher", daemon=False).start()
        self.stoppers.append(self.stop)

    #: For the test, which must not leave the threads.
    stoppers = []


class nothing_is_left_in_the_process__descriptor(CompletePlugin):
    says = "there is left: descriptor"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.descriptor = os.open(host.root_dir, os.O_RDONLY)


class nothing_is_left_in_the_process__process(CompletePlugin):
    says = "sleep 1000"

    @hookimpl
    def init(self, host):
        super().init(host)
        subprocess.run(["sh", "-c", "sleep 1000 >/dev/null 2>&1 &"], check=True)
