"""A scrape tells what it can: parts that fail, hang or meet the manager's end are left out alone (BR-18, BR-52)."""

import threading

import pytest

from volumehost.errors import StoreError
from volumehost.metrics import exposition

pytestmark = pytest.mark.root


@pytest.fixture
def node(measured, bind):
    return measured(bind(), controllers=True)


def left_out(seen):
    return {part: number for (part,), number in seen.all("volumehost_scrape_errors_total").items()}


def test_a_part_that_fails_is_left_out_counted_and_told_once(node, scrape, monkeypatch, caplog):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full", action="read the store")

    monkeypatch.setattr(node.api, "list", refuse)
    for _ in range(2):
        seen = scrape()
    assert left_out(seen) == {"claims": 2}
    assert seen.all("pv_collector_total_pv_count") == {}
    assert seen.value("volumehost_journal_bytes") is not None
    assert caplog.text.count("the part 'claims' of the metrics is left out: ") == 1


def test_br52_a_part_that_hangs_is_not_asked_again_before_it_has_answered(node, scrape, monkeypatch):
    go, asked = threading.Event(), []

    def hang(manager):
        asked.append(1)
        go.wait(60)
        return []

    monkeypatch.setattr(exposition, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(exposition, "_driver_families", hang)
    try:
        for _ in range(3):
            seen = scrape()
        assert len(asked) == 1
        assert left_out(seen) == {"drivers": 3}
    finally:
        go.set()


def test_many_at_once_do_not_disturb_each_other(node, scrape, nfs):
    failures, seen = [], []

    def one():
        try:
            seen.append(scrape())
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "a", "mountPath": "/a"}]}
    node.mount_pod(
        {"metadata": {"name": "web"}, "spec": {"containers": [container], "volumes": [nfs("a")]}}, timeout=20
    )
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert [left_out(each) for each in seen] == [{}] * 8


def test_a_manager_that_is_left_in_the_middle_ends_no_scrape(manager, metrics, scrape, bind):
    with manager(bind(), enter=False, metrics=metrics.operations) as left:
        metrics.attach(left)
    seen = scrape()
    assert left_out(seen).keys() >= {"volumes", "operations", "records"}
    assert seen.value("process_resident_memory_bytes") > 0
    metrics.detach()
    assert scrape().all("volumehost_scrape_errors_total")["volumes",] == 1
