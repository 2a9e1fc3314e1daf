"""Records: found by id and by name, listed in pages, kept through crashes."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volumehost_loop_driver.errors import AbortedError
from volumehost_loop_driver.record_store import RecordStore
from volumehost_loop_driver.records import VolumeRecord


def record(key: str, name: str = "", size: int = 1, id: str = "") -> VolumeRecord:
    return VolumeRecord(id=id or f"vol-{key}", key=key, name=name or f"name-{key}", size=size)


@pytest.fixture
def store(tmp_path) -> RecordStore[VolumeRecord]:
    return RecordStore(str(tmp_path), VolumeRecord)


def test_records_are_found_again_by_the_next_process(store, tmp_path) -> None:
    store.put(record("a", size=10))
    store.put(record("b", name="other", size=5))
    store.put(record("a", size=20))
    again = RecordStore(str(tmp_path), VolumeRecord)
    assert again.get("vol-a") == record("a", size=20)
    assert again.by_name("other") == record("b", name="other", size=5)
    assert again.total_size == 25
    again.remove(record("a"))
    again.remove(record("a"))
    assert again.total_size == 5
    assert again.get("vol-a") is None
    assert again.by_name("name-a") is None
    assert RecordStore(str(tmp_path), VolumeRecord).keys() == {"b"}


def test_a_record_that_cannot_be_read_costs_no_other_and_stays_br56(store, tmp_path, caplog) -> None:
    store.put(record("good"))
    (tmp_path / "torn.json").write_bytes(b'{"id": "vol-to')
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "moved.json").write_bytes((tmp_path / "good.json").read_bytes())
    again = RecordStore(str(tmp_path), VolumeRecord)
    assert again.get("vol-good") is not None
    assert again.unreadable == {"torn", "empty", "moved"}
    assert again.keys() == {"good", "torn", "empty", "moved"}, "their images are not nobody's"
    assert (tmp_path / "torn.json").exists()
    assert "torn.json" in caplog.text


def test_a_record_whose_writing_was_cut_short_never_counted(store, tmp_path) -> None:
    (tmp_path / ".new.json.new").write_bytes(b"{")
    again = RecordStore(str(tmp_path), VolumeRecord)
    assert again.keys() == set()
    assert os.listdir(tmp_path) == []


def test_pages_show_each_record_once(store) -> None:
    for number in range(7):
        store.put(record(f"{number}"))
    seen, token = [], ""
    while True:
        page, token = store.page(token, 3)
        seen += [item.key for item in page]
        assert len(page) <= 3
        if not token:
            break
    assert seen == [f"{number}" for number in range(7)]
    assert [item.key for item in store.page("", 0)[0]] == seen


def test_a_page_goes_on_although_its_next_record_is_gone(store) -> None:
    for number in range(4):
        store.put(record(f"{number}"))
    _, token = store.page("", 2)
    store.remove(record("2"))
    page, token = store.page(token, 2)
    assert [item.key for item in page] == ["3"]
    assert token == ""


def test_a_filter_fills_its_pages(store) -> None:
    for number in range(6):
        store.put(record(f"{number}", size=number))
    page, token = store.page("", 2, lambda item: item.size % 2 == 1)
    assert [item.key for item in page] == ["1", "3"]
    page, token = store.page(token, 2, lambda item: item.size % 2 == 1)
    assert ([item.key for item in page], token) == (["5"], "")


def test_a_token_of_somebody_else_is_refused(store) -> None:
    with pytest.raises(AbortedError, match="token"):
        store.page("17", 0)


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=40))
def test_handles_and_names_may_be_anything(tmp_path_factory, text) -> None:
    directory = str(tmp_path_factory.mktemp("store"))
    store = RecordStore(directory, VolumeRecord)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    store.put(record("k", name=text, id=text))
    again = RecordStore(directory, VolumeRecord)
    assert again.get(text) == record("k", name=text, id=text)
    assert again.by_name(text) is not None
    assert os.listdir(directory) == ["k.json"], "no file is named by a handle"
