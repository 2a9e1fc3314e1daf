"""What may not be looked at is told once, with what to do about it."""

from volumehost.inspection.findings.of_records import unreadable_places

DENIED, FAILED = "Permission denied", "Input/output error"


def told(*problems):
    return [(each.subject, each.evidence, each.advice) for each in unreadable_places(problems)]


def test_a_place_is_told_once_and_nothing_below_it_that_has_the_same_reason():
    root = "/r"
    below = [(f"{root}/plugins/kubernetes.io/csi", DENIED), (f"{root}/plugins/kubernetes.io", DENIED)]
    assert told(*below, (f"{root}/plugins", DENIED), (f"{root}/plugins", DENIED), (f"{root}/pods", DENIED)) == [
        ("/r/plugins", (DENIED,), "run it as root"),
        ("/r/pods", (DENIED,), "run it as root"),
    ]


def test_a_neighbour_and_another_reason_are_told():
    assert told(("/r/plugins", DENIED), ("/r/plugins_registry", DENIED), ("/r/plugins/a", FAILED)) == [
        ("/r/plugins", (DENIED,), "run it as root"),
        ("/r/plugins/a", (FAILED,), ""),
        ("/r/plugins_registry", (DENIED,), "run it as root"),
    ]
