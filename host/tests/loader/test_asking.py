"""A plugin that raises, exits, lies or hangs in can_support is set aside, and the rest go on."""

from __future__ import annotations

import itertools
import threading

import pytest

from volumehost import hookimpl
from volumehost.errors import MultiplePluginsMatchedError, NoPluginMatchedError, PluginCallError


class Misbehaving:
    """A mixin whose can_support does what the test says, and counts."""

    def __init__(self, name, behave):
        super().__init__(name)
        self.behave = behave
        self.asked = 0

    @hookimpl
    def can_support(self, spec):
        self.asked += 1
        return self.behave(spec)


def raising(error):
    def behave(spec):
        raise error

    return behave


class Unshowable(Exception):  # noqa: N818 - it is a value as well
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


BEHAVIOURS = {
    "raises": (raising(ValueError("odd spec")), "ValueError: odd spec"),
    "exits": (raising(SystemExit(3)), "SystemExit: 3"),
    "raises what is no Exception": (raising(GeneratorExit()), "GeneratorExit"),
    "raises what cannot be shown": (raising(Unshowable()), "Unshowable: <Unshowable that cannot be shown>"),
    "answers what cannot be shown": (lambda spec: Unshowable(), "<Unshowable that cannot be shown>, not a bool"),
    "answers None": (lambda spec: None, "not a bool"),
    "answers 1": (lambda spec: 1, "1, not a bool"),
    "answers text": (lambda spec: "yes", "'yes', not a bool"),
}


@pytest.fixture
def misbehaving(base):
    return type("Plugin", (Misbehaving, base), {})


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_one_that_misbehaves_is_set_aside_and_the_rest_work(manager, base, misbehaving, spec_of, clock, behaviour):
    behave, reason = BEHAVIOURS[behaviour]
    bad = misbehaving("example.com/bad", behave)
    made = manager(base("example.com/a"), bad, base("example.com/z", "csi"), clock=clock)
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    assert made.find_plugin_by_spec(spec_of("csi")).name == "example.com/z"
    assert bad.asked == 1, "it is not asked again while it is set aside"
    (status,) = [each for each in made.plugins() if each.name == "example.com/bad"]
    assert status.state == "set aside"
    assert reason in status.detail
    (error,) = made.errors()
    assert isinstance(error, PluginCallError)
    assert error.plugin == "example.com/bad"
    assert made.find_plugin_by_name("example.com/bad"), "its volumes can still be taken away"


def test_no_match_names_those_that_are_set_aside(manager, misbehaving, spec_of):
    made = manager(misbehaving("example.com/bad", raising(ValueError())))
    with pytest.raises(NoPluginMatchedError, match=r"set aside: example\.com/bad"):
        made.find_plugin_by_spec(spec_of("nfs"))


def test_it_is_asked_again_later_and_later(manager, misbehaving, spec_of, clock):
    bad = misbehaving("example.com/bad", raising(ValueError()))
    made = manager(bad, clock=clock)
    asked_at = []
    for _ in range(4000):
        before = bad.asked
        with pytest.raises(NoPluginMatchedError):
            made.find_plugin_by_spec(spec_of("nfs"))
        if bad.asked > before:
            asked_at.append(clock.now)
        clock.advance(0.25)
    delays = [b - a for a, b in itertools.pairwise(asked_at)]
    assert delays[:8] == [0.5, 1, 2, 4, 8, 16, 32, 64]
    assert set(delays[8:]) == {120}


def test_one_that_recovers_is_used_again(manager, misbehaving, spec_of, clock):
    bad = misbehaving("example.com/p", raising(ValueError()))
    made = manager(bad, clock=clock)
    with pytest.raises(NoPluginMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))
    bad.behave = lambda spec: True
    clock.advance(0.6)
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/p"
    assert made.errors() == []
    bad.behave = raising(ValueError())
    with pytest.raises(NoPluginMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))
    clock.advance(0.6)
    bad.behave = lambda spec: True
    assert made.find_plugin_by_spec(spec_of("nfs")), "recovering starts the delays anew"


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_one_that_goes_wrong_after_it_was_proven_is_set_aside(manager, base, misbehaving, spec_of, behaviour):
    bad = misbehaving("example.com/bad", lambda spec: False)
    made = manager(bad, base("example.com/a"))
    for _ in range(3):
        assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    bad.behave = BEHAVIOURS[behaviour][0]
    for _ in range(3):
        assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    assert [status.state for status in made.plugins()] == ["active", "set aside"]


class Hanging:
    """Hangs until it is let go."""

    def __init__(self):
        self.let_go = threading.Event()
        self.hanging = threading.Event()

    def __call__(self, spec):
        self.hanging.set()
        self.let_go.wait(30)
        return True


@pytest.fixture
def hanging():
    made = Hanging()
    yield made
    made.let_go.set()


def test_one_that_hangs_is_set_aside_and_not_asked_while_it_does(
    manager, base, misbehaving, spec_of, clock, hanging, eventually
):
    bad = misbehaving("example.com/bad", hanging)
    made = manager(bad, base("example.com/a"), clock=clock, ask_timeout=0.5)
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    clock.advance(3600)
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    assert bad.asked == 1, "its thread is still stuck"
    (error,) = made.errors()
    assert "did not come back within 0.5 s" in error.reason
    hanging.let_go.set()
    eventually(lambda: not any(thread.name == "ask example.com/bad" for thread in threading.enumerate()))
    bad.behave = lambda spec: False
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    assert bad.asked == 2


def test_guarded_protects_against_one_that_hangs_after_it_was_proven(manager, base, misbehaving, spec_of, hanging):
    bad = misbehaving("example.com/bad", lambda spec: False)
    made = manager(bad, base("example.com/a"), ask_timeout=0.5)
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    bad.behave = hanging
    assert made.find_plugin_by_spec(spec_of("nfs"), guarded=True).name == "example.com/a"
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a", "and later ones are not held up"


def test_several_that_hang_cost_one_deadline_each_and_are_all_named(manager, base, misbehaving, spec_of, hanging):
    plugins = [misbehaving(f"example.com/bad{number}", hanging) for number in range(3)]
    made = manager(*plugins, base("example.com/a"), ask_timeout=0.5)
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    assert len(made.errors()) == 3


def test_one_that_is_slow_to_hang_does_not_hide_an_ambiguity(manager, base, misbehaving, spec_of, hanging):
    made = manager(base("example.com/a"), misbehaving("example.com/b", hanging), base("example.com/c"), ask_timeout=0.5)
    with pytest.raises(MultiplePluginsMatchedError) as caught:
        made.find_plugin_by_spec(spec_of("nfs"))
    assert caught.value.names == ("example.com/a", "example.com/c")


def test_the_callers_interrupt_is_not_swallowed(manager, misbehaving, spec_of):
    bad = misbehaving("example.com/p", lambda spec: True)
    made = manager(bad)
    assert made.find_plugin_by_spec(spec_of("nfs"))
    bad.behave = raising(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        made.find_plugin_by_spec(spec_of("nfs"))


def test_what_is_proven_is_proven_for_one_kind_of_source(manager, misbehaving, spec_of):
    threads = []
    plugin = misbehaving("example.com/p", lambda spec: threads.append(threading.current_thread()) or True)
    made = manager(plugin)
    for source in ("nfs", "nfs", "csi", "csi"):
        made.find_plugin_by_spec(spec_of(source))
    here = threading.current_thread()
    assert [thread is here for thread in threads] == [False, True, False, True]


def test_context_variables_reach_a_guarded_call(manager, misbehaving, spec_of):
    import contextvars

    request = contextvars.ContextVar("request", default="none")
    seen = []
    made = manager(misbehaving("example.com/p", lambda spec: seen.append(request.get()) or True))
    request.set("mine")
    made.find_plugin_by_spec(spec_of("nfs"), guarded=True)
    assert seen == ["mine"]
