"""Unique names of volumes on a node (IDENT-01 to -03, UTIL-10 to -12)."""

from __future__ import annotations

from volumehost.errors import SpecError


def unique_volume_name(plugin_name: str, volume_name: str) -> str:
    """``<plugin>/<volume name of the plugin>``, shared by all pods of the node (UTIL-10).

    :raises SpecError: the plugin gave no volume name.
    """
    if not volume_name:
        raise SpecError("the plugin gave an empty volume name", action=f"naming a volume of {plugin_name}")
    return f"{plugin_name}/{volume_name}"


def unique_volume_name_of_pod(plugin_name: str, pod_uid: str, spec_name: str) -> str:
    """``<plugin>/<pod uid>-<spec name>``, of one pod alone (UTIL-11)."""
    return f"{plugin_name}/{pod_uid}-{spec_name}"


def driver_in_name(plugin_name: str, unique_name: str) -> str:
    """The CSI driver of a volume that pods share, which is in its name (CSI-NAME-03); "" for any other."""
    if plugin_name != "kubernetes.io/csi":
        return ""
    driver, separator, _ = unique_name.removeprefix(f"{plugin_name}/").partition("^")
    return driver if separator else ""


def split_unique_volume_name(unique_name: str) -> tuple[str, str]:
    """(plugin name, the plugin's volume name); the latter may contain slashes (UTIL-12).

    :raises SpecError: it has fewer than three parts.
    """
    parts = unique_name.split("/", 2)
    if len(parts) < 3:
        raise SpecError(
            f"cannot split volume unique name {unique_name} to plugin/volume components",
            action="reading a unique volume name",
            subject=unique_name,
        )
    return f"{parts[0]}/{parts[1]}", parts[2]
