"""What is sent along with a volume: secrets, pod info, service account tokens, the publish context.

Every mapping here is a new one: objects of the API are borrowed, and what is added must not end up in them
(CSI-PLUG-33, improved). Nothing here is ever logged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from volumehost.errors import SpecError, TransientOperationError
from volumehost_csi.client import TOKEN_KEY
from volumehost_csi.names import attachment_name
from volumehost_csi.services import transient_failure

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, SecretReference
    from volumehost.volume_host import VolumeHost
    from volumehost_csi.driver_objects import DriverTreatment
    from volumehost_csi.services import Services

#: The most that the keys and values of a map may have together, in bytes (CSI-WIRE-08).
_MOST_MAP_BYTES: Final = 4096


def secret_values(host: VolumeHost, reference: SecretReference | None) -> dict[str, str]:
    """The secret's values as texts, none without a reference (CSI-MNT-13, CSI-PLUG-32).

    :raises TransientOperationError: it is missing, or a value is not UTF-8, which CSI cannot carry: names the key.
    """
    if reference is None:
        return {}
    name = f"{reference.namespace}/{reference.name}"
    with transient_failure(f"getting the secret {name}", name):
        secret = host.get_secret_func()(reference.namespace, reference.name)
    values: dict[str, str] = {}
    for key, value in secret.data.items():
        try:
            values[key] = value.decode()
        except UnicodeDecodeError:
            raise TransientOperationError(
                f"the value of its key {key!r} is not UTF-8 text",
                action=f"reading the secret {name} for a CSI driver",
                subject=name,
                hint="CSI carries texts only; store the value encoded, in base64 for example, if the driver takes that",
            ) from None
    return values


def pod_info(pod: Pod, *, ephemeral: bool) -> dict[str, str]:
    """The pod as a driver with ``podInfoOnMount`` sees it (CSI-PLUG-29)."""
    return {
        "csi.storage.k8s.io/pod.name": pod.metadata.name,
        "csi.storage.k8s.io/pod.namespace": pod.metadata.namespace,
        "csi.storage.k8s.io/pod.uid": pod.metadata.uid,
        "csi.storage.k8s.io/serviceAccount.name": pod.spec.service_account_name,
        "csi.storage.k8s.io/ephemeral": "true" if ephemeral else "false",
    }


def tokens(host: VolumeHost, treatment: DriverTreatment, pod: Pod) -> dict[str, str]:
    """The tokens of the pod's service account that the driver asks for, under one key (CSI-TOK-01 to -05).

    :raises TransientOperationError: one of them cannot be had.
    """
    if not treatment.token_requests:
        return {}
    from volumehost.api.objects import BoundObjectReference, TokenRequest, TokenRequestSpec

    namespace, account = pod.metadata.namespace, pod.spec.service_account_name
    bound = BoundObjectReference(kind="Pod", api_version="v1", name=pod.metadata.name, uid=pod.metadata.uid)
    found: dict[str, dict[str, str | None]] = {}
    with transient_failure(f"requesting a token of the service account {namespace}/{account}", account):
        get = host.get_service_account_token_func()
        for wanted in treatment.token_requests:
            spec = TokenRequestSpec(
                audiences=[wanted.audience] if wanted.audience else [],
                expiration_seconds=wanted.expiration_seconds,
                bound_object_ref=bound,
            )
            status = get(namespace, account, TokenRequest(spec=spec)).status
            found[wanted.audience] = {"token": status.token, "expirationTimestamp": status.expiration_timestamp}
    # Go's order: audiences sorted, the token before its time (CSI-TOK-09).
    return {TOKEN_KEY: json.dumps(dict(sorted(found.items())), separators=(",", ":"))}


def publish_additions(
    host: VolumeHost, treatment: DriverTreatment, pod: Pod, *, ephemeral: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """(additions to the volume context, additions to the secrets) for a publish (CSI-MNT-11, -13, CSI-TOK-06)."""
    context = pod_info(pod, ephemeral=ephemeral) if treatment.pod_info else {}
    found = tokens(host, treatment, pod)
    if treatment.tokens_in_secrets:
        return context, found
    return {**context, **found}, {}


def publish_context(services: Services, treatment: DriverTreatment, driver: str, handle: str) -> Mapping[str, str]:
    """What attaching told about the volume on this node, empty where nothing is attached (CSI-PLUG-27).

    What was read when it was looked whether the volume is attached, a moment ago, is not read again.

    :raises TransientOperationError: the VolumeAttachment cannot be read; ``status.attached`` is not looked at.
    """
    if not treatment.attach_required:
        return {}
    from volumehost.api.objects import VolumeAttachment

    name = attachment_name(handle, driver, services.node_name)
    seen = services.seen_attachments.get(name)
    if seen is not None:
        return seen
    with transient_failure(f"getting the VolumeAttachment {name}", name):
        api = services.require_api(f"getting the VolumeAttachment {name}")
        return api.get(VolumeAttachment, name).status.attachment_metadata


def check_attributes(attributes: Mapping[str, str], volume: str) -> None:
    """Refuse attributes of an inline volume that CSI cannot carry: users control them directly (CSI-EPH-09).

    :raises SpecError: they are too long together.
    """
    size = sum(len(key.encode("utf-8", "surrogatepass")) for item in attributes.items() for key in item)
    if size > _MOST_MAP_BYTES:
        raise SpecError(
            f"its volumeAttributes have {size} bytes, more than the {_MOST_MAP_BYTES} that CSI allows",
            action=f"reading the inline volume {volume}",
            subject=volume,
            hint="give the driver fewer or shorter attributes",
        )
