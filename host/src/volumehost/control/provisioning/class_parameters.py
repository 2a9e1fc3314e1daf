"""What a storage class tells the provisioner itself: filesystem type and secrets; the rest is the driver's.

Parameters of the prefix ``csi.storage.k8s.io/`` are read here and go no further. The names and rules are those of the
external-provisioner, so that a vendor's classes mean the same here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.api.validation.names import dns_label, dns_subdomain
from volumehost.errors import SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolumeClaim, SecretReference

PREFIX = "csi.storage.k8s.io/"
_FS_TYPE = f"{PREFIX}fstype"
#: The purpose that serves all others for which nothing is said.
_DEFAULT = ""
#: Purpose to the parameter names that stood for it before there was a prefix; those are the driver's too.
_OLD_NAMES = {
    "provisioner": "csiProvisioner",
    "controller-publish": "csiControllerPublish",
    "node-stage": "csiNodeStage",
    "node-publish": "csiNodePublish",
}
_PURPOSES = (*_OLD_NAMES, "controller-expand", "node-expand")
_KNOWN = {
    _FS_TYPE,
    *(f"{PREFIX}{purpose}{what}" for purpose in ("", *(f"{p}-" for p in _PURPOSES)) for what in
      ("secret-name", "secret-namespace")),
}  # fmt: skip
_TOKEN = re.compile(r"\$\{([^}]*)\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class ClassSecrets:
    """The secrets of a class for one claim, by purpose; None where the class names none."""

    provisioner: SecretReference | None
    controller_publish: SecretReference | None
    node_stage: SecretReference | None
    node_publish: SecretReference | None
    controller_expand: SecretReference | None
    node_expand: SecretReference | None


def driver_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """What goes to the driver.

    :raises SpecError: a parameter has the reserved prefix and is not known.
    """
    unknown = sorted(key for key in parameters if key.startswith(PREFIX) and key not in _KNOWN)
    if unknown:
        raise SpecError(f"unknown parameter {', '.join(unknown)}: the prefix {PREFIX} is reserved")
    return {key: text for key, text in parameters.items() if not key.startswith(PREFIX)}


def fs_type(parameters: Mapping[str, str]) -> str:
    """The filesystem type that the class names, "" for the driver's own choice.

    :raises SpecError: it is named twice.
    """
    found = [text for key, text in parameters.items() if key.lower() == "fstype" or key == _FS_TYPE]
    if len(found) > 1:
        raise SpecError(f"fstype is given more than once, as fstype and as {_FS_TYPE}")
    return found[0] if found else ""


def class_secrets(parameters: Mapping[str, str], pv_name: str, claim: PersistentVolumeClaim) -> ClassSecrets:
    """The secrets that the class names for this claim.

    :raises SpecError: only half a name is given, it holds a token that is not known, or is no name in the end.
    """
    metadata = claim.metadata
    names = {"pv.name": pv_name, "pvc.name": metadata.name, "pvc.namespace": metadata.namespace}
    # The secret that creates volumes must not be the user's to choose; those that mount them may be.
    users = names | {f"pvc.annotations['{key}']": text for key, text in metadata.annotations.items()}
    found = {
        purpose: _secret(parameters, purpose, names if purpose == "provisioner" else users) for purpose in _PURPOSES
    }
    return ClassSecrets(**{purpose.replace("-", "_"): reference for purpose, reference in found.items()})


def _secret(parameters: Mapping[str, str], purpose: str, names: Mapping[str, str]) -> SecretReference | None:
    from volumehost.api.objects import SecretReference

    template = _template(parameters, purpose) or _template(parameters, _DEFAULT)
    if template is None:
        return None
    name_template, namespace_template = template
    namespace = _resolved(namespace_template, {key: names[key] for key in ("pv.name", "pvc.namespace")})
    name = _resolved(name_template, names)
    for text, shown, problem in (
        (namespace, namespace_template, dns_label(namespace)),
        (name, name_template, dns_subdomain(name)),
    ):
        if problem:
            resolved = "" if text == shown else f", which stands for {text!r},"
            raise SpecError(f"{shown!r}{resolved} is no name of a secret or namespace: {problem}")
    return SecretReference(name=name, namespace=namespace)


def _template(parameters: Mapping[str, str], purpose: str) -> tuple[str, str] | None:
    prefix = f"{PREFIX}{purpose}-secret" if purpose else f"{PREFIX}secret"
    old = _OLD_NAMES.get(purpose)
    names = [parameters[key] for key in (f"{prefix}-name", f"{old}SecretName") if key in parameters]
    namespaces = [parameters[key] for key in (f"{prefix}-namespace", f"{old}SecretNamespace") if key in parameters]
    what = f"{purpose or 'default'} secret"
    if len(names) > 1 or len(namespaces) > 1:
        raise SpecError(f"the {what} is given twice, with and without the prefix {PREFIX}")
    if len(names) != len(namespaces):
        raise SpecError(f"the {what} needs both a name and a namespace")
    if not names:
        return None
    if not names[0] or not namespaces[0]:
        raise SpecError(f"the name or namespace of the {what} is empty")
    return names[0], namespaces[0]


def _resolved(template: str, names: Mapping[str, str]) -> str:
    unknown = sorted({token for match in _TOKEN.finditer(template) if (token := match[1] or match[2]) not in names})
    if unknown:
        raise SpecError(f"{template!r} holds {', '.join(unknown)}, which stands for nothing here")
    return _TOKEN.sub(lambda match: names[match[1] or match[2]], template)
