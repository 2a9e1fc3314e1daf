from __future__ import annotations

from volumehost.cli.pod_report import pod_data, unready_lines, volume_table
from volumehost.node.status.records import PodStatus, VolumeStatus

MOUNTED = VolumeStatus("data", "mounted", plugin="example.com/disk", path="/r/data", mounted=True)
FAILED = VolumeStatus(
    "logs",
    "failed",
    plugin="example.com/disk",
    distribution="acme-disk",
    version="1.0",
    operation="volume_mount",
    attempts=3,
    error="PERMISSION_DENIED: bad key",
    retry_in=4.0,
)
UNUSED = VolumeStatus("spare", "unused")


def pod(*volumes: VolumeStatus, name: str = "web") -> PodStatus:
    return PodStatus("default", name, "uid-1", "failed", volumes)


def test_a_line_for_each_volume() -> None:
    assert volume_table([pod(MOUNTED, FAILED, UNUSED)], with_pod=False).splitlines() == [
        "VOLUME   PLUGIN             STATE                          PATH",
        "data     example.com/disk   mounted                        /r/data",
        "logs     example.com/disk   failed",
        "spare    -                  unused: no container uses it",
    ]


def test_a_pod_without_volumes_has_a_line_too() -> None:
    text = volume_table([pod(name="a"), pod(MOUNTED, name="b")], with_pod=True)
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["default/a", "default/b"]


def test_a_pod_whose_name_nobody_knows_goes_by_its_uid() -> None:
    assert volume_table([pod(MOUNTED, name="")], with_pod=True).splitlines()[1].startswith("uid-1 ")


def test_br83_a_volume_that_is_not_ready_is_explained_in_one_line() -> None:
    (line,) = unready_lines([pod(MOUNTED, FAILED, UNUSED)])
    for word in (
        "default/web",
        "logs",
        "example.com/disk",
        "acme-disk 1.0",
        "volume_mount",
        "3 attempts",
        "PERMISSION_DENIED: bad key",
        "4.0 s",
    ):
        assert word in line


def test_br83_so_is_one_that_nothing_is_done_about() -> None:
    lines = unready_lines(
        [pod(VolumeStatus("a", "lost"), VolumeStatus("b", "not-mounted"), VolumeStatus("c", "pending"))]
    )
    assert lines == [
        "default/web: volume a: lost, it was mounted, and the kernel no longer shows it",
        "default/web: volume b: not-mounted, it is wanted, and not mounted at present",
        "default/web: volume c: pending",
    ]


def test_of_a_pod_that_ends_what_is_gone_waits_for_nobody() -> None:
    gone = PodStatus("default", "web", "uid-1", "unmounting", (VolumeStatus("a", "not-mounted"), FAILED))
    (line,) = unready_lines([gone])
    assert "volume logs" in line


def test_data_has_every_field_of_a_volume() -> None:
    data = pod_data(pod(FAILED))
    (volume,) = data["volumes"]
    assert len(volume) == len(VolumeStatus.__dataclass_fields__) + 1  # and "ready"
    assert (volume["retryIn"], volume["ready"], data["ready"]) == (4.0, False, False)
