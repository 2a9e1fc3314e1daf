"""What controllers count: attempts, the whole from first to last, forced detaches (METRIC-01 to -03, -08, -09)."""

import pytest

from volumehost.control.machinery import counting
from volumehost.control.machinery.counting import CountedOperation, count_forced_detach, counted_class_assignment
from volumehost.errors import ConflictError, OperationError


class Told:
    """A ControlMetrics that keeps what it is told, and may be broken."""

    def __init__(self, *, broken=False):
        self.seen, self.broken = [], broken

    def _tell(self, *what):
        self.seen.append(what)
        if self.broken:
            raise ValueError("metrics that fail disturb nobody")

    def controlled(self, operation, seconds, error, plugin, *, migrated):
        assert seconds >= 0
        self._tell("controlled", operation, str(error or ""), plugin, migrated)

    def completed(self, operation, seconds, plugin):
        self._tell("completed", operation, plugin)

    def attempt_failed(self, operation, plugin):
        self._tell("failed", operation, plugin)

    def forced_detach(self, reason):
        self._tell("forced", reason)

    def class_assigned(self, error):
        self._tell("class", str(error or ""))


def attempt(operation, error=None, uid="uid", **labels):
    with operation.attempt(uid, "example.com/x", **labels):
        if error is not None:
            raise error


@pytest.mark.parametrize("broken", [False, True], ids=["", "by broken metrics"])
def test_metric02_03_09_attempts_are_counted_and_the_whole_once(broken):
    told = Told(broken=broken)
    operation = CountedOperation(told, "volume_provision", "provision")
    with pytest.raises(OperationError):
        attempt(operation, OperationError("full"))
    attempt(operation, migrated=True)
    assert told.seen == [
        ("controlled", "volume_provision", "full", "example.com/x", False),
        ("failed", "provision", "example.com/x"),
        ("controlled", "volume_provision", "", "example.com/x", True),
        ("completed", "provision", "example.com/x"),
    ]


def test_a_write_that_met_a_newer_state_is_no_attempt():
    told = Told()
    with pytest.raises(ConflictError):
        attempt(CountedOperation(told, "volume_delete", "delete"), ConflictError("newer"))
    assert told.seen == []


def test_what_has_no_whole_counts_its_attempts_alone():
    told = Told()
    operation = CountedOperation(told, "expand_volume")
    attempt(operation)
    with pytest.raises(OperationError):
        attempt(operation, OperationError("full"))
    assert [each[0] for each in told.seen] == ["controlled", "controlled"]


def test_without_metrics_nothing_is_measured():
    operation = CountedOperation(None, "volume_delete", "delete")
    attempt(operation)
    assert operation._since == {}
    count_forced_detach(None, "annotation")
    with counted_class_assignment(None):
        pass


def test_what_is_remembered_of_failures_is_bounded_and_can_be_forgotten(monkeypatch):
    monkeypatch.setattr(counting, "_REMEMBERED", 3)
    operation = CountedOperation(Told(), "volume_delete", "delete")
    for number in range(5):
        with pytest.raises(OperationError):
            attempt(operation, OperationError("busy"), uid=f"uid-{number}")
    assert list(operation._since) == ["uid-2", "uid-3", "uid-4"]
    operation.forget("uid-3")
    attempt(operation, uid="uid-2")
    assert list(operation._since) == ["uid-4"]


def test_metric08_09_forced_detaches_and_classes():
    told = Told()
    count_forced_detach(told, "annotation")
    with counted_class_assignment(told):
        pass
    with pytest.raises(ConflictError), counted_class_assignment(told):
        raise ConflictError("newer")
    assert told.seen == [("forced", "annotation"), ("class", ""), ("class", "newer")]
