"""What a driver was asked, read as it is asked, and whether it was asked in an order that CSI allows."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from storm.faults import OPPOSITE, RPC_SECONDS

_SUBJECTS = ("volume_id", "source_volume_id", "name", "snapshot_id")

#: What each call needs to have been done before, and not been undone since.
_NEEDS = {"NodeStageVolume": "ControllerPublishVolume", "NodePublishVolume": "NodeStageVolume"}
#: What each call must find undone, when it was ever begun: the calls that it takes the ground from.
_ABOVE = {
    "NodeUnstageVolume": "NodePublishVolume",
    "ControllerUnpublishVolume": "NodeStageVolume",
    "DeleteVolume": "ControllerPublishVolume",
}
#: Who makes the call: each serialises its own for one volume, as the sidecars of a cluster do.
_SERVICE = {
    "CreateVolume": "provisioner",
    "DeleteVolume": "provisioner",
    "ControllerPublishVolume": "attacher",
    "ControllerUnpublishVolume": "attacher",
    "ControllerExpandVolume": "resizer",
}
#: The driver's clock begins when a call has come in, the host's deadline when it was sent; on a busy machine that is
#: some tenths of a second, and as long may it take the host to notice that its time is up, or what came right after.
_ON_THE_WAY = 0.4
_NOTICED = 0.25
_UNDOES = {undone: done for done, undone in OPPOSITE.items()}


@dataclass
class Asked:
    """One call; ``code`` is empty until it has ended. Times are seconds of the monotonic clock."""

    name: str
    subject: str
    started: float
    code: str = ""
    ended: float = 0.0
    target: str = ""


class CallLog:
    """Follows the file of one driver's calls, over all of the driver's starts. Not safe for threads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0
        self._by_number: dict[tuple[int, int], Asked] = {}
        self.by_subject: dict[str, list[Asked]] = defaultdict(list)
        self.count = 0

    def follow(self) -> None:
        """Read what has come since."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line))

    def _take(self, entry: dict[str, Any]) -> None:
        key = entry["pid"], entry["number"]
        if "name" not in entry:
            self._by_number[key].code, self._by_number[key].ended = entry["code"], entry["ended"]
            return
        request = entry["request"]
        subject = next((request[name] for name in _SUBJECTS if request.get(name)), "")
        target = request.get("target_path", "")
        asked = self._by_number[key] = Asked(entry["name"], subject, entry["started"], target=target)
        self.by_subject[subject].append(asked)
        self.count += 1


def order_problems(calls: list[Asked], *, serial: bool = True) -> list[str]:
    """What is wrong with the order of the calls about one volume.

    :param calls: in the order of their beginning.
    :param serial: no two of one caller at the same time, as the host sees it: it waits no longer than its deadline.
    """
    found: list[str] = []
    last: dict[str, Asked] = {}
    begun: dict[str, bool] = {}
    done: dict[str, bool] = {}
    for call in calls:
        service = _SERVICE.get(call.name, "node")
        former = last.get(service)
        if serial and former is not None and call.started < _end_for_host(former) - _ON_THE_WAY:
            found.append(f"{call.name} began while {former.name} was on its way")
        need = _NEEDS.get(call.name)
        if need is not None and not done.get(need):
            found.append(f"{call.name} without a {need} that has worked")
        above = _ABOVE.get(call.name)
        if above is not None and begun.get(above):
            found.append(f"{call.name} while {above} may hold")
        code = _code_for_host(call)
        if call.name in OPPOSITE:
            begun[call.name] = begun.get(call.name, False) or code in _MAY_HAVE_WORKED
            done[call.name] = done.get(call.name, False) or code == "OK"
        elif call.name in _UNDOES:
            done[_UNDOES[call.name]] = False
            if code == "OK":
                begun[_UNDOES[call.name]] = False
        last[service] = call
    return found


#: Codes after which the host has to take the work for done until it was undone; "" is a call without an answer.
_MAY_HAVE_WORKED = frozenset(
    {"OK", "", "CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"}
)


def _code_for_host(call: Asked) -> str:
    """How the call ended for a host that waits no longer than its deadline, of those about it as it may have."""
    return call.code if call.ended and call.ended - call.started < RPC_SECONDS + _NOTICED else ""


def _end_for_host(call: Asked) -> float:
    """A call that has no end was its driver's last one."""
    return min(call.ended, call.started + RPC_SECONDS) if call.ended else call.started
