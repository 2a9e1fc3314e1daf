"""Good plugins that do what the complete one does not: refresh their content, hang, need more than they are given."""

import os
import threading

from complete_plugin import CompletePlugin, Volume

from volumehost import errors, hookimpl


class RefreshingPlugin(CompletePlugin):
    """Writes a secret into the volume at each set_up, and asks to be run again to keep it fresh."""

    @hookimpl
    def requires_remount(self, spec):
        return True

    class volume(Volume):  # noqa: N801 - the attribute of the plugin
        def set_up_at(self, directory, args):
            token = self.host.get_secret_func()("default", "token").data["token"]
            super().set_up_at(directory, args)
            with open(f"{directory}/.token.new", "wb") as file:
                file.write(token)
            os.rename(f"{directory}/.token.new", f"{directory}/token")


class HangingPlugin(CompletePlugin):
    """Never comes back from set_up."""

    class volume(Volume):  # noqa: N801 - the attribute of the plugin
        def set_up_at(self, directory, args):
            threading.Event().wait(30)


class SilentPlugin(CompletePlugin):
    """Never says whether a volume is its own, and never lets go of one."""

    @hookimpl
    def can_support(self, spec):
        threading.Event().wait(30)

    class volume(Volume):  # noqa: N801 - the attribute of the plugin
        def tear_down_at(self, directory):
            threading.Event().wait(30)


class ExitingPlugin(CompletePlugin):
    """Ends the process when it is asked to mount."""

    class volume(Volume):  # noqa: N801 - the attribute of the plugin
        def set_up_at(self, directory, args):
            raise SystemExit("enough")


class FailingPlugin(CompletePlugin):
    """Cannot mount here."""

    class volume(Volume):  # noqa: N801 - the attribute of the plugin
        def set_up_at(self, directory, args):
            raise errors.MountError("no such server", action="reaching the array", subject=directory)


class ConfiguredPlugin(CompletePlugin):
    """Provisions only where its configuration allows it."""

    @hookimpl
    def new_provisioner(self, options):
        if not self.host.get_volume_config(self.get_plugin_name()).provisioning_enabled:
            raise errors.OperationNotSupportedError("provisioning is disabled")
        return super().new_provisioner(options)


class UnloadablePlugin(CompletePlugin):
    """Has a name that no host accepts."""

    @hookimpl
    def get_plugin_name(self):
        return "complete"
