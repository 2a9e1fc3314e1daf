"""Hook wrappers of the embedding program run around every call of every plugin."""

from __future__ import annotations

import pytest

from volumehost import hookimpl
from volumehost.errors import HookNotImplementedError, PluginContractError


class Tracing:
    def __init__(self, plugin=None):
        self.calls = []
        self.plugin = plugin

    @hookimpl(wrapper=True)
    def new_mounter(self, spec, pod):
        self.calls.append(("before", spec, pod))
        result = yield
        self.calls.append(("after", result[0]))
        return ("wrapped", result)

    @hookimpl(wrapper=True)
    def can_support(self, spec):
        self.calls.append("can_support")
        return (yield)


def test_wrappers_run_around_the_call_of_the_one_plugin(manager, base, spec_of):
    made = manager(base("example.com/a"), base("example.com/b", "csi"))
    tracing = Tracing()
    made.register_hook_wrapper(tracing)
    plugin = made.find_plugin_by_name("example.com/a")
    assert plugin.new_mounter("s", "p") == ("wrapped", ("mounter", "s", "p"))
    assert plugin.new_mounter(pod="p", spec="s") == ("wrapped", ("mounter", "s", "p"))
    assert tracing.calls == [("before", "s", "p"), ("after", "mounter")] * 2
    tracing.calls.clear()
    assert made.find_plugin_by_spec(spec_of("nfs")) is plugin
    assert tracing.calls == ["can_support", "can_support"], "once for each plugin asked"


def test_wrappers_run_around_plugins_that_come_later(manager, base, prober):
    made = manager(prober=prober)
    tracing = Tracing()
    made.register_hook_wrapper(tracing)
    prober.add(base())
    assert made.find_plugin_by_name("example.com/p").new_mounter("s", "p")[0] == "wrapped"


def test_a_newcomer_never_answers_for_another(manager, base, prober):
    """pluggy asks the last one registered first; each plugin's calls must reach that plugin alone."""
    made = manager(prober=prober)
    made.register_hook_wrapper(Tracing())
    loaded = []
    for number in range(5):
        prober.add(base(f"example.com/p{number}", str(number)))
        loaded.append(made.find_plugin_by_name(f"example.com/p{number}"))
        assert [plugin.get_plugin_name() for plugin in loaded] == [f"example.com/p{each}" for each in range(number + 1)]


def test_a_wrapper_for_each_plugin_knows_whose_call_it_wraps(manager, base):
    made = manager(base("example.com/a"), base("example.com/b", "csi"))
    wrappers = {}

    def make(plugin):
        wrappers[plugin.name] = Tracing(plugin)
        return wrappers[plugin.name]

    made.register_hook_wrapper(make, per_plugin=True)
    made.find_plugin_by_name("example.com/b").new_mounter("s", "p")
    assert wrappers["example.com/a"].calls == []
    assert len(wrappers["example.com/b"].calls) == 2


def test_several_wrappers_run_the_last_registered_outermost(manager, base):
    order = []

    class Named:
        def __init__(self, name):
            self.name = name

        @hookimpl(wrapper=True)
        def new_mounter(self):
            order.append(self.name)
            return (yield)

    made = manager(base())
    made.register_hook_wrapper(Named("inner"))
    made.register_hook_wrapper(Named("outer"))
    made.find_plugin_by_name("example.com/p").new_mounter("s", "p")
    assert order == ["outer", "inner"]


def test_exceptions_pass_through_a_wrapper(manager, base):
    class Plugin(base):
        @hookimpl
        def new_mounter(self, spec, pod):
            raise LookupError("mine")

    made = manager(Plugin())
    made.register_hook_wrapper(Tracing())
    with pytest.raises(LookupError, match="mine"):
        made.find_plugin_by_name("example.com/p").new_mounter("s", "p")


def test_hooks_that_a_plugin_lacks_are_not_wrapped(manager, base):
    class Wrapper:
        @hookimpl(wrapper=True)
        def new_deleter(self):
            return (yield)

        @hookimpl(wrapper=True)
        def requires_remount(self):
            raise AssertionError("nobody was called")
            yield

    made = manager(base())
    made.register_hook_wrapper(Wrapper())
    plugin = made.find_plugin_by_name("example.com/p")
    with pytest.raises(HookNotImplementedError):
        plugin.new_deleter("s")
    assert plugin.requires_remount("s") is False


def test_a_policy_may_refuse_a_call(manager, base):
    class Policy:
        @hookimpl(wrapper=True)
        def new_mounter(self, spec):
            if spec == "forbidden":
                raise PermissionError(spec)
            return (yield)

    made = manager(base())
    made.register_hook_wrapper(Policy())
    plugin = made.find_plugin_by_name("example.com/p")
    assert plugin.new_mounter("fine", "p")
    with pytest.raises(PermissionError):
        plugin.new_mounter("forbidden", "p")


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "wraps no hook"),
        ({"new_mountr": hookimpl(wrapper=True)(lambda self: (yield))}, "no hook 'new_mountr'"),
        ({"new_mounter": hookimpl(lambda self, spec: None)}, "wrapper=True"),
    ],
)
def test_what_is_no_wrapper_is_refused_and_changes_nothing(manager, base, members, words):
    made = manager(base())
    with pytest.raises(PluginContractError, match=words):
        made.register_hook_wrapper(type("Wrapper", (), members)())
    assert made.find_plugin_by_name("example.com/p").new_mounter("s", "p")[0] == "mounter"


def test_a_wrapper_with_a_wrong_argument_is_refused_and_changes_nothing(manager, base):
    class Wrong:
        @hookimpl(wrapper=True)
        def new_mounter(self, nonsense):
            return (yield)

    made = manager(base())
    with pytest.raises(PluginContractError, match="nonsense"):
        made.register_hook_wrapper(Wrong())
    assert made.find_plugin_by_name("example.com/p").new_mounter("s", "p")[0] == "mounter"
