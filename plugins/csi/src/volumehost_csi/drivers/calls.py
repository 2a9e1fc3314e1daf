"""One call of a driver: its deadline, its errors, what may be shown of it; every controller call goes through here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from volumehost.errors import StorageDriverError, StorageDriverUnsupportedError
from volumehost_csi.failures import rpc_failure, without_secrets
from volumehost_csi.metrics import CSIMetrics
from volumehost_csi.registration.store import DriverInstance

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True, slots=True)
class Call:
    """What is being called: the RPC, what for, about which volume, and what must not be shown of it.

    ``creates``: it makes a volume or a snapshot, which may take longer than other calls.
    """

    name: str
    action: str
    subject: str = ""
    secrets: Mapping[str, str] | None = None
    expansion: bool = False
    capability: str = ""
    creates: bool = False


class Caller:
    """Calls one registration of a driver. Safe for threads.

    :param timeout: the longest deadline of a call in seconds, and that of calls that bring none.
    :param create_timeout: the same for calls that create, which copy data where there is a source (the
        external-provisioner's default is 10 s with retries, its users set minutes).
    """

    def __init__(
        self,
        instance: DriverInstance,
        channel: grpc.Channel,
        metrics: CSIMetrics,
        *,
        timeout: float,
        create_timeout: float,
    ) -> None:
        self.instance = instance
        self.channel = channel
        self.timeout = timeout
        self.create_timeout = create_timeout
        self._metrics = metrics

    @property
    def driver(self) -> str:
        """The driver's name."""
        return self.instance.name

    def __call__(
        self, call: Call, service: str, rpc: Callable[..., Any], request: Any, timeout: float | None = None
    ) -> Any:
        """Make the call; ``service`` is ``Controller``, say.

        :raises StorageDriverError: it failed; the kind tells how (CSI-ERR-04).
        """
        __waits_for__ = f"{call.name} of the CSI driver {self.driver}"  # noqa: F841 - status shows it
        longest = self.create_timeout if call.creates else self.timeout
        code, started = "OK", time.perf_counter()
        try:
            return rpc(request, timeout=longest if timeout is None else min(timeout, longest))
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a failure of the call (CSI-ERR-05)
            failure = rpc_failure(
                error,
                driver=self.driver,
                call=call.name,
                action=call.action,
                subject=call.subject,
                secrets=(call.secrets or {}).values(),
                expansion=call.expansion,
            )
            code = failure.code
            if call.capability and isinstance(failure, StorageDriverUnsupportedError):
                failure.reason = (
                    f"the CSI driver {self.driver} declares {call.capability} and does not implement {call.name}"
                )
                failure.hint = "tell its vendor: it says that it can do what it cannot"
            raise failure from None
        finally:
            self._metrics.observe_call(
                self.driver, f"/csi.v1.{service}/{call.name}", code, time.perf_counter() - started, migrated=False
            )

    def refuse(
        self, call: Call, reason: str, *, kind: type[StorageDriverError] = StorageDriverError
    ) -> StorageDriverError:
        """The error for arguments or a reply that make no sense."""
        return kind(
            without_secrets(reason, _values(call.secrets)),
            driver=self.driver,
            call=call.name,
            action=call.action,
            subject=call.subject,
        )

    def require(self, call: Call, **arguments: str) -> None:
        """Refuse empty arguments, which no driver can do anything with (CSI-ERR-06)."""
        for name, value in arguments.items():
            if not value:
                raise self.refuse(call, f"the {name.replace('_', ' ')} is empty")


def _values(secrets: Mapping[str, str] | None) -> Iterable[str]:
    return (secrets or {}).values()
