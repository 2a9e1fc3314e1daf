"""The daemon's life: one leader of several, what it tells of itself, and an API that does not answer as it should."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request

from volumehost.testing.api_server import Rule

LEASE = ("leases", "volumehost-controller", "kube-system")


def ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def holder(cluster) -> str:
    return str(cluster.objects.get(*LEASE)["spec"].get("holderIdentity") or "")


def test_another_takes_over_from_one_that_died(cluster, wait, tmp_path) -> None:
    """Two processes; the first is killed, and the second goes on with what it began."""
    cluster.node()
    cluster.driver()
    cluster.volume()
    kubeconfig = cluster.server.kubeconfig(tmp_path / "killed.conf")
    command = [
        sys.executable,
        "-m",
        "volumehost",
        "controller",
        "--kubeconfig",
        kubeconfig,
        "--root-dir",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            first = wait(lambda: holder(cluster), "a leader")
            second = cluster.start(cluster.settings("second"))
            cluster.pod()
            wait(lambda: cluster.attached() == ["data"], "the attachment")
            wait(lambda: second.leader == first, "the second to stand by")
            assert not second.leading
        finally:
            process.kill()
    # Its lease runs out by the clock of who looks at it; here it is made short, which a lease says of itself.
    cluster.objects.patch("leases", LEASE[1], {"spec": {"leaseDurationSeconds": 1}}, LEASE[2])
    wait(lambda: second.leading, "the second to lead")
    assert holder(cluster) == "second"
    cluster.end_pod()
    wait(lambda: not cluster.attachments(), "the detach")


def test_one_that_ends_gives_the_lease_back(cluster, wait) -> None:
    first = cluster.start(cluster.settings("first"))
    wait(lambda: first.leading, "the first to lead")
    second = cluster.start(cluster.settings("second"))
    wait(lambda: second.leader == "first", "the second to stand by")
    first.stop()
    wait(lambda: second.leading, "the second to lead")
    assert not first.leading


def test_one_that_cannot_renew_stops_and_leads_again_when_it_can(cluster, wait) -> None:
    cluster.node()
    cluster.driver()
    cluster.volume()
    daemon = cluster.start(cluster.settings("only"))
    wait(lambda: daemon.leading, "it to lead")
    with cluster.server.unreachable():
        wait(lambda: not daemon.leading, "it to stop")
        assert "lease" in wait(daemon.lease_problem, "a word on why")
    wait(lambda: daemon.leading, "it to lead again")
    cluster.pod()
    wait(lambda: cluster.attached() == ["data"], "the attachment")


def test_health_readiness_and_metrics(cluster, wait) -> None:
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    daemon = cluster.start(cluster.settings("only", http="127.0.0.1:0"))
    url = daemon.http.url
    wait(lambda: ask(f"{url}/readyz")[0] == 200, "it to be ready")
    assert ask(f"{url}/healthz") == (200, "ok")
    wait(lambda: cluster.attached() == ["data"], "the attachment")
    driver = 'plugin_name="kubernetes.io/csi:csi.example.com"'
    expected = {
        'leader_election_master_status{name="volumehost-controller"} 1.0',
        f'attachdetach_controller_total_volumes{{{driver},state="actual_state_of_world"}} 1.0',
        "storage_operation_duration_seconds_count",
        'operation_name="volume_attach"',
        'pv_collector_bound_pvc_count{namespace="default",storage_class="",volume_attributes_class=""} 1.0',
    }

    def tells_all() -> bool:
        text = ask(f"{url}/metrics")[1]
        return all(each in text for each in expected)

    wait(tells_all, f"{expected} in the metrics")


def test_readiness_names_what_is_not_permitted(cluster, wait) -> None:
    """403 for one resource: it says which permission is missing, and does the rest."""
    user = "system:serviceaccount:x:half"
    cluster.node()
    with cluster.server.deny(user=user, resource="volumeattachments"):
        daemon = cluster.start(cluster.settings(user=user, http="127.0.0.1:0"))
        code, text = wait(
            lambda: answer if "volumeattachments" in (answer := ask(f"{daemon.http.url}/readyz"))[1] else None,
            "a word on it",
        )
        assert code == 503
        assert "VolumeAttachment" in text
        cluster.volume()
        wait(
            lambda: cluster.objects.get("persistentvolumeclaims", "data", "default")["status"].get("phase") == "Bound",
            "the claim to be bound",
        )


def test_an_api_server_that_refuses_everything_is_not_asked_without_pause(cluster, wait) -> None:
    """429 and 500: no spin. What it asks for until it has failed to lead many times over is few and slow."""
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    cluster.attacher.works = False
    daemon = cluster.start()
    wait(cluster.attachments, "it to be at work")
    cluster.server.faults.add(Rule(code=429, retry_after=1, times=None))
    cluster.server.requests.clear()
    cluster.attacher.works = True
    cluster.objects.delete("pods", "web", "default")
    cluster.pod("again")
    cluster.server.close_watches()
    wait(daemon.work.problems, "it to see that its view is old")
    wait(lambda: cluster.server.requests.count() >= 3, "it to ask again")
    times = [request.at for request in cluster.server.requests.all()]
    # Each of some fifteen kinds may ask once when its watch ends; after that all together ask every second at most.
    assert len([at for at in times if at - times[0] < 1.0]) < 40
