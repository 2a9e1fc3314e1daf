"""Secrets for calls of a driver: read when a call needs them, held no longer, and shown nowhere (BR-74)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import SecretReference


def read_secret(api: ApiClient, reference: SecretReference | None) -> dict[str, str]:
    """The keys and values of the secret; empty without a reference (CSI-EXA-18).

    :raises FailedPreconditionError: there is no such secret, or a value of it is no text; it may be there later.
    """
    if reference is None or not reference.name:
        return {}
    from volumehost.api.objects import Secret

    where = f"{reference.namespace}/{reference.name}"
    try:
        secret = api.get(Secret, reference.name, reference.namespace)
    except ObjectNotFoundError as error:
        raise FailedPreconditionError(
            "there is no such secret", action=f"reading secret {where}", subject=where, hint="create it"
        ) from error
    try:
        return {key: value.decode() for key, value in secret.data.items()}
    except UnicodeDecodeError:
        # The values must not be seen: neither here nor in the chain of errors.
        raise FailedPreconditionError(
            "a value of it is not text", action=f"reading secret {where}", subject=where, hint="drivers take text only"
        ) from None
