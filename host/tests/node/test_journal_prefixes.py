"""What a journal restores to, wherever its writer was stopped: never something better than what had happened."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from volumehost.node.journal.format import LOST, parse
from volumehost.node.journal.journal import Journal
from volumehost.node.restart.reconstruct import reconstruct
from volumehost.node.state.actual import ActualState
from volumehost.node.state.states import DeviceState, MountState

VOLUMES, PODS = ("a.b/p/one", "a.b/p/two"), ("x", "y")

#: What operations write, in their words: (whether it is an intent, the fields).
of_mount = st.sampled_from(
    [
        (True, {"state": "mounting", "plugin": "a.b/p", "inner": "v"}),
        (False, {"state": "mounted", "path": "/p", "is_mount": True}),
        (True, {"state": "unmounting"}),
        (False, {"state": "failed", "err": "no"}),
        (False, {"state": "uncertain", "err": "no"}),
        (False, {"gone": True}),
    ]
)
of_device = st.sampled_from(
    [
        (True, {"dev": "mounting", "plugin": "a.b/p", "dmpath": "/g"}),
        (False, {"dev": "mounted"}),
        (True, {"dev": "unmounting"}),
        (False, {"dev": "unmounted", "dmpath": ""}),
        (False, {"gone": True}),
    ]
)
steps = st.one_of(
    st.tuples(st.sampled_from(VOLUMES), st.sampled_from(PODS), of_mount),
    st.tuples(st.sampled_from(VOLUMES), st.just(""), of_device),
    st.just("flush"),
)
histories = st.lists(steps, max_size=25)


def _play(path, history, **options):
    """Write the history; what the journal says after each of its writes, oldest first."""
    journal = Journal(path, boot_id="boot-1", wall_clock=lambda: 1.0, **options)
    journal.open()
    seen = [journal.entries()]
    for step in history:
        if step == "flush":
            journal.flush()
        else:
            volume, pod, (is_intent, fields) = step
            (journal.write if is_intent else journal.note)({"v": volume, "p": pod, **fields})
        seen.append(journal.entries())
    journal.close()
    return seen


class _Plugins:
    def find_plugin_by_name(self, name):
        return self

    def hold(self, *users):
        pass


class _Services:
    """As much as a start from a journal needs."""

    def __init__(self, journal):
        self.actual = ActualState(lambda volume, pod: None)
        self.plugins = _Plugins()
        self.journal = journal


def _restored(contents):
    contents.complete = contents.intact = True  # the directories are others' to test
    services = _Services(None)
    reconstruct(services, contents)
    return services.actual


@settings(max_examples=150, deadline=None)
@given(histories, st.data())
def test_any_prefix_of_the_file_is_a_moment_of_the_history(tmp_path_factory, history, data):
    path = str(tmp_path_factory.mktemp("journal") / "volumes.journal")
    seen = _play(path, history)
    with open(path, "rb") as file:
        content = file.read()
    header = content.index(b"\n") + 1
    cut = data.draw(st.integers(header, len(content)))
    contents = parse(content[:cut])
    assert contents.intact
    assert contents.entries in seen
    if cut == len(content):
        assert contents.entries == seen[-1]


@settings(max_examples=150, deadline=None)
@given(histories, st.booleans(), st.data())
def test_what_is_restored_is_never_better_than_what_happened(tmp_path_factory, history, rebooted, data):
    path = str(tmp_path_factory.mktemp("journal") / "volumes.journal")
    _play(path, history)
    with open(path, "rb") as file:
        content = file.read()
    cut = data.draw(st.integers(content.index(b"\n") + 1, len(content)))
    with open(path, "wb") as file:
        file.write(content[:cut])
    said = parse(content[:cut]).entries
    journal = Journal(path, boot_id="boot-2" if rebooted else "boot-1")
    with contextlib.closing(journal):
        actual = _restored(journal.open())
    for volume in VOLUMES:
        found = actual.get_volume(volume)
        device = said.get((volume, ""), {}).get("dev")
        owes_unmount = device in ("mounting", "mounted", "unmounting")
        assert (found is not None and found.device_state is DeviceState.UNCERTAIN) == owes_unmount
        if found is not None:
            assert found.device_owed == (owes_unmount and not rebooted)
        for pod in PODS:
            state = said.get((volume, pod), {}).get("state")
            mount = actual.get_mount(volume, pod)
            assert (mount is not None) == (state not in (None, "failed"))  # nothing is lost, nothing invented
            if mount is not None:
                assert mount.state is MountState.UNCERTAIN
                assert mount.reconstructed is not rebooted


@settings(max_examples=100, deadline=None)
@given(histories, st.booleans())
def test_a_rewritten_journal_restores_to_the_same(tmp_path_factory, history, rebooted):
    """Compaction and a reboot rewrite the file; many small writes join texts in memory."""
    base = tmp_path_factory.mktemp("journal")
    plain = _play(str(base / "plain"), history)[-1]
    assert _play(str(base / "small"), history, compact_above=0)[-1] == plain
    boot = "boot-2" if rebooted else "boot-1"
    journal = Journal(str(base / "small"), boot_id=boot, compact_above=0)
    with contextlib.closing(journal):
        journal.open()
        expected = {key: _lost(record) if rebooted else record for key, record in plain.items()}
        assert journal.entries() == expected
    with open(base / "small", "rb") as file:
        contents = parse(file.read())
    assert (contents.entries, contents.boot_id, contents.intact) == (expected, boot, True)


def _lost(record):
    mounts = ("mounting", "mounted", "unmounting", "uncertain")
    return {key: LOST if key in ("state", "dev") and value in mounts else value for key, value in record.items()}


@settings(max_examples=100, deadline=None)
@given(histories, st.data())
def test_a_damaged_byte_anywhere_is_noticed_or_harmless(tmp_path_factory, history, data):
    """Then the directories are asked too; the checksum over a rewritten journal must not hide it."""
    path = str(tmp_path_factory.mktemp("journal") / "volumes.journal")
    last = _play(path, history, compact_above=0)[-1]
    with open(path, "rb") as file:
        content = bytearray(file.read())
    position = data.draw(st.integers(0, len(content) - 2))
    content[position] ^= data.draw(st.integers(1, 255))
    contents = parse(bytes(content))
    assert not contents.intact or contents.entries == last
