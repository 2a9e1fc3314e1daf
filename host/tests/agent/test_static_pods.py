"""StaticPods look by look: what a look finds, what it tells, and what never ends a pod (BR-15, BR-51)."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from volumehost.agent.static_manifests import read_static_pods
from volumehost.agent.static_pods import StaticPods


class Told:
    """Stands in for PodSources: which pods are wanted, and what was told."""

    def __init__(self):
        self.wanted, self.log, self.complete = set(), [], False

    def want(self, source, pod):
        self.wanted.add(pod.metadata.name)
        self.log.append(("want", pod.metadata.name))

    def end(self, source, pod):
        self.wanted.discard(pod.metadata.name)
        self.log.append(("end", pod.metadata.name))

    def told(self, source):
        self.complete = True


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "manifests"
    made.mkdir()
    return made


@pytest.fixture
def source(manager, directory):
    return StaticPods(manager, str(directory))


@pytest.fixture
def sources():
    return Told()


@pytest.fixture
def put(directory, pod_document):
    def write(name, *pods, old=True):
        path = directory / name
        path.write_text("\n---\n".join(json.dumps(pod_document(pod)) for pod in pods))
        if old:
            os.utime(path, (1, 1))

    return write


def test_an_old_file_is_taken_at_once_a_new_one_when_it_is_the_same_for_two_looks(source, sources, put):
    put("old.yaml", "old")
    put("new.yaml", "new", old=False)
    source._look(sources)
    assert sources.wanted == {"old-node"}
    assert not sources.complete
    source._look(sources)
    assert sources.wanted == {"old-node", "new-node"}
    assert sources.complete
    source._look(sources)
    assert len(sources.log) == 2


def test_a_file_that_is_being_written_is_left_until_it_is_quiet(source, sources, put, directory):
    put("a.yaml", "a")
    source._look(sources)
    for pods in (("a",), ("a", "b")):
        put("a.yaml", *pods, old=False)
        source._look(sources)
        assert sources.wanted == {"a-node"}
    source._look(sources)
    assert sources.wanted == {"a-node", "b-node"}


def test_an_editor_that_replaces_a_file_ends_nothing(source, sources, put, directory):
    put("a.yaml", "a")
    source._look(sources)
    os.rename(directory / "a.yaml", directory / "a.yaml~")
    source._look(sources)
    put("a.yaml", "a")
    source._look(sources)
    source._look(sources)
    assert sources.log == [("want", "a-node"), ("want", "a-node")]  # its file is another one, the pod is not


def test_a_file_that_is_gone_for_two_looks_ends_its_pods(source, sources, put, directory):
    put("a.yaml", "a", "b")
    source._look(sources)
    os.unlink(directory / "a.yaml")
    source._look(sources)
    assert sources.wanted == {"a-node", "b-node"}
    source._look(sources)
    assert sources.wanted == set()
    assert source.problems() == []


def test_what_cannot_be_read_is_told_once_and_ends_nothing(source, sources, put, directory, manager, caplog):
    put("a.yaml", "a")
    source._look(sources)
    (directory / "a.yaml").write_text("{")
    os.utime(directory / "a.yaml", (2, 2))
    for _ in range(3):
        source._look(sources)
    assert sources.log == [("want", "a-node")]
    assert len([record for record in caplog.records if "cannot be read" in record.message]) == 1
    assert [event[:3] for event in manager.events] == [("a-node", "Warning", "FailedValidation")]
    (problem,) = source.problems()
    assert problem.count("a.yaml") == 1, "its path once"


def test_links_are_followed_and_one_that_leads_nowhere_is_no_word(source, sources, put, directory, tmp_path):
    put("elsewhere.yaml", "linked")
    os.rename(directory / "elsewhere.yaml", tmp_path / "target")
    os.symlink(tmp_path / "target", directory / "link.yaml")
    source._look(sources)
    assert sources.wanted == {"linked-node"}
    os.unlink(tmp_path / "target")
    for _ in range(3):
        source._look(sources)
    assert sources.wanted == {"linked-node"}
    assert "link.yaml: No such file" in source.problems()[0]
    os.unlink(directory / "link.yaml")
    for _ in range(2):
        source._look(sources)
    assert sources.wanted == set()


def test_a_directory_that_cannot_be_listed_is_told_once(source, sources, put, directory, caplog):
    put("a.yaml", "a")
    source._look(sources)
    os.rename(directory, f"{directory}.away")
    for _ in range(3):
        source._look(sources)
    assert sources.wanted == {"a-node"}
    assert len([record for record in caplog.records if "cannot be looked at" in record.message]) == 1
    (pod,) = source._files["a.yaml"].pods.values()
    assert "cannot be looked at" in source.problem_of(pod)


def test_nothing_is_complete_while_one_file_is_not_read(source, sources, put, directory):
    put("a.yaml", "a")
    (directory / "b.yaml").write_text("{")
    for _ in range(3):
        source._look(sources)
    assert sources.wanted == {"a-node"}
    assert not sources.complete
    put("b.yaml", "b")
    source._look(sources)
    assert sources.complete


def test_looking_again_tells_every_pod(source, sources, put):
    put("a.yaml", "a")
    source._look(sources)
    source.look_again()
    source._look(sources)
    assert sources.log == [("want", "a-node")] * 2


def test_of_two_pods_with_one_name_the_first_is_wanted_until_it_goes(source, sources, put, directory, caplog):
    """Not both, which would share their name in the store, and not now the one and then the other (BR-09)."""
    put("b.yaml", "web", "other")
    source._look(sources)
    put("a.yaml", "web")
    put("c.yaml", "web")
    for _ in range(3):
        source._look(sources)
    assert sources.log == [("want", "web-node"), ("want", "other-node")]
    assert sources.complete, "that a pod is refused keeps nobody waiting"
    assert caplog.text.count(f"{directory}/b.yaml has one of that name") == 2
    assert [problem.split(":")[0] for problem in source.problems()] == [f"{directory}/{name}.yaml" for name in "ac"]
    put("b.yaml", "other")
    source._look(sources)
    source._look(sources)
    assert sources.log[2:] == [("end", "web-node"), ("want", "other-node"), ("want", "web-node")]
    assert [problem.partition(":")[0] for problem in source.problems()] == [f"{directory}/c.yaml"]
    os.unlink(directory / "a.yaml")
    source._look(sources)
    source._look(sources)
    assert sources.log[5:] == [("end", "web-node"), ("want", "web-node")]
    assert source.problems() == []


def test_of_two_pods_with_one_name_the_mounted_one_goes_on_after_a_restart(source, sources, put, directory, manager):
    path = str(directory / "b.yaml")
    put("a.yaml", "web")
    put("b.yaml", "web")
    manager.in_use.update(read_static_pods(path, "node")[0])
    source._look(sources)
    assert [name for name, file in source._files.items() if file.told] == ["b.yaml"]
    assert sources.log == [("want", "web-node")]


def test_two_pods_of_one_name_in_one_file(source, sources, directory, pod_document):
    documents = [pod_document("web"), {**pod_document("web"), "spec": {"containers": [{"name": "d", "image": "i"}]}}]
    (directory / "a.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    os.utime(directory / "a.yaml", (1, 1))
    source._look(sources)
    assert sources.log == [("want", "web-node")]
    assert "a.yaml has one of that name" in source.problems()[0]


class Directory(RuleBasedStateMachine):
    """A pod ends only when its file was not listed twice in a row, or says something else that can be read."""

    names = st.sampled_from(["a.yaml", "b.yaml"])

    def __init__(self):
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="static-"))
        self.directory = self.place / "manifests"
        self.directory.mkdir()
        self.source = StaticPods(self.make_manager(None), str(self.directory))
        self.source._mirrors.refresh = lambda pods: None
        self.sources, self.time = Told(), 1
        self.expected, self.content, self.unlisted = {}, {}, {}
        self.away = False

    def teardown(self):
        shutil.rmtree(self.place)

    @property
    def _now(self):
        return self.place / "away" if self.away else self.directory

    @rule(name=names, pods=st.sets(st.sampled_from("xyz")), good=st.booleans())
    def write(self, name, pods, good):
        container = {"name": "c", "image": "i"}
        head = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
        documents = [{**head, "metadata": {"name": f"{pod}-{name[0]}"}} for pod in sorted(pods)]
        (self._now / name).write_text("\n---\n".join(map(json.dumps, documents)) + ("" if good else "\n---\n{"))
        self.time += 1
        os.utime(self._now / name, (self.time, self.time))
        self.content[name] = {f"{pod}-{name[0]}-node" for pod in pods} if good and pods else None

    @rule(name=names)
    def remove(self, name):
        (self._now / name).unlink(missing_ok=True)
        self.content.pop(name, None)

    @rule()
    def take_away(self):
        if not self.away:
            os.rename(self.directory, self.place / "away")
            self.away = True

    @precondition(lambda self: self.away)
    @rule()
    def bring_back(self):
        os.rename(self.place / "away", self.directory)
        self.away = False

    @rule()
    def look(self):
        self.source._look(self.sources)
        if self.away:
            return
        for name in ("a.yaml", "b.yaml"):
            if name in self.content:
                self.unlisted[name] = 0
                if self.content[name] is not None:
                    self.expected[name] = self.content[name]
            else:
                self.unlisted[name] = self.unlisted.get(name, 0) + 1
                if self.unlisted[name] >= 2:
                    self.expected.pop(name, None)

    @invariant()
    def wanted(self):
        assert self.sources.wanted == set().union(*self.expected.values())


def test_whatever_happens_to_the_directory(manager):
    of_this_test = type("OfThisTest", (Directory,), {"make_manager": type(manager)})
    run_state_machine_as_test(of_this_test, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
