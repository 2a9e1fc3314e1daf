"""MGR-INIT-01 to -10: handing plugins to the manager."""

from __future__ import annotations

import threading

import pytest

from volumehost import hookimpl
from volumehost.errors import (
    DuplicatePluginError,
    InvalidPluginNameError,
    PluginContractError,
    PluginImportError,
    PluginInitError,
    PluginNotFoundError,
)


def names(manager):
    return [status.name for status in manager.plugins() if status.state == "active"]


def test_classes_instances_and_modules_are_plugins(manager, base, plugin_source):
    import types

    class Zero(base):
        def __init__(self):
            super().__init__("example.com/class")

    module = types.ModuleType("module_plugin")
    for hook in ("get_volume_name", "can_support", "new_mounter", "new_unmounter", "construct_volume_spec"):
        setattr(module, hook, hookimpl(specname=hook)(lambda: False))
    module.get_plugin_name = hookimpl(specname="get_plugin_name")(lambda: "example.com/module")
    made = manager(Zero, base("example.com/instance"), module)
    assert made.init_errors == []
    assert names(made) == ["example.com/class", "example.com/instance", "example.com/module"]
    assert made.find_plugin_by_name("example.com/class").plugin.__class__ is Zero


def test_mgr_init_05_one_bad_plugin_does_not_keep_the_next_from_loading(manager, base):
    class Broken(base):
        @hookimpl
        def init(self, host):
            raise OSError("no device")

    class Exiting(base):
        @hookimpl
        def init(self, host):
            raise SystemExit(3)

    class Incomplete:
        @hookimpl
        def get_plugin_name(self):
            return "example.com/incomplete"

    class Raising:
        def __init__(self):
            raise ValueError("cannot be made")

    made = manager(Broken("example.com/broken"), Exiting("example.com/exit"), Incomplete(), Raising, base())
    assert [type(error) for error in made.init_errors] == [
        PluginInitError,
        PluginInitError,
        PluginContractError,
        PluginImportError,
    ]
    assert "OSError: no device" in str(made.init_errors[0])
    assert isinstance(made.init_errors[0].__cause__, OSError), "MGR-INIT-07: the error itself is the cause"
    assert "SystemExit" in str(made.init_errors[1])
    assert "cannot be made" in str(made.init_errors[3])
    assert names(made) == ["example.com/p"]
    with pytest.raises(PluginNotFoundError):
        made.find_plugin_by_name("example.com/broken")


def test_mgr_init_06_invalid_names(manager, base):
    made = manager(base("Bad_/-also-bad-"), base("noslash"), base(None))
    assert [type(error) for error in made.init_errors] == [InvalidPluginNameError] * 3
    first, second, third = (str(error) for error in made.init_errors)
    assert 'volume plugin has invalid name: "Bad_/-also-bad-": prefix part' in first
    assert first.count(";") >= 1
    assert '"noslash"' in second
    assert "NoneType" in third


def test_mgr_init_06_a_duplicate_is_refused_and_never_initialised(manager, base):
    first, second = base(), base()
    made = manager(first, second)
    (error,) = made.init_errors
    assert isinstance(error, DuplicatePluginError)
    assert 'volume plugin "example.com/p" was registered more than once' in error.reason
    assert (len(first.hosts), second.hosts) == (1, [])
    assert made.find_plugin_by_name("example.com/p").plugin is first
    assert names(made) == ["example.com/p"]


def test_mgr_init_02_each_plugin_is_initialised_once_with_the_host(manager, base):
    plugin, host = base(), object()
    made = manager(plugin, host=host)
    made.find_plugin_by_name("example.com/p")
    assert plugin.hosts == [host]


def test_mgr_init_10_no_host_is_legal(manager, base):
    plugin = base()
    manager(plugin)
    assert plugin.hosts == [None]


def test_mgr_init_03_a_prober_that_cannot_start_is_not_used(manager, base, caplog):
    class Unusable:
        def init(self):
            raise OSError("no inotify")

        def probe(self):
            raise AssertionError("not used")

    made = manager(base(), prober=Unusable())
    assert made.init_errors == []
    assert made.find_plugin_by_name("example.com/p")
    assert "no inotify" in caplog.text


def test_mgr_init_04_a_second_call_adds(manager, base):
    made = manager(base("example.com/a"))
    assert made.init_plugins([base("example.com/b", "csi")]) == []
    (error,) = made.init_plugins([base("example.com/a")])
    assert isinstance(error, DuplicatePluginError)
    assert names(made) == ["example.com/a", "example.com/b"]


def test_mgr_init_08_errors_of_probed_plugins_are_not_returned(manager, base, prober):
    prober.add(base("bad name"), "bad")
    made = manager(base(), prober=prober)
    assert made.init_errors == []
    assert [type(error) for error in made.errors()] == [InvalidPluginNameError]


def test_an_init_that_hangs_is_given_up_and_the_others_load(manager, base):
    release = threading.Event()

    class Hanging(base):
        @hookimpl
        def init(self, host):
            release.wait(30)

    try:
        made = manager(Hanging("example.com/hang"), base(), load_timeout=0.5)
        (error,) = made.init_errors
        assert isinstance(error, PluginInitError)
        assert "did not come back within 0.5 s" in str(error)
        assert names(made) == ["example.com/p"]
    finally:
        release.set()


@pytest.mark.parametrize("declared", ["nfs", 7, [1], ("nfs", None)])
def test_sources_that_are_no_collection_of_names_are_refused(manager, base, declared):
    class Plugin(base):
        @hookimpl
        def get_volume_sources(self):
            return declared

    (error,) = manager(Plugin()).init_errors
    assert isinstance(error, PluginContractError)
    assert "get_volume_sources" in error.reason


def test_init_comes_before_every_other_hook_but_the_name(manager, base):
    calls = []

    class Plugin(base):
        @hookimpl
        def init(self, host):
            calls.append("init")

        @hookimpl
        def get_volume_sources(self):
            calls.append("sources")

    manager(Plugin())
    assert calls == ["init", "sources"]


def test_a_plugin_that_looks_something_up_in_its_init_does_not_deadlock(manager, base, spec_of):
    class Wrapper(base):
        @hookimpl
        def init(self, host):
            self.found = host.manager.find_plugin_by_spec(spec_of("nfs")).name
            with pytest.raises(PluginNotFoundError):
                host.manager.find_plugin_by_name("example.com/not-there")

    class Host:
        manager = None

    host = Host()
    host.manager = manager()
    wrapper = Wrapper("example.com/wrapper", "csi")
    assert host.manager.init_plugins([base(), wrapper], None, host) == []
    assert wrapper.found == "example.com/p"


class FakeInformers:
    def __init__(self, syncs_after=0):
        self.calls = []
        self.syncs_after = syncs_after

    def start(self):
        self.calls.append("start")

    def wait_for_cache_sync(self, timeout):
        assert 0 < timeout <= 1
        self.calls.append("wait")
        return self.calls.count("wait") > self.syncs_after

    def stop(self):
        self.calls.append("stop")


def kubelet_host(informers):
    from volumehost.volume_host import KubeletVolumeHost

    space = {name: lambda self: None for name in dir(KubeletVolumeHost) if not name.startswith("_")}
    space["get_informer_factory"] = lambda self: informers
    return type("Host", (), space)()


def test_mgr_init_09_run_starts_the_informers_of_a_kubelet_host_and_waits(manager, eventually):
    informers, stop = FakeInformers(syncs_after=2), threading.Event()
    made = manager(host=kubelet_host(informers))
    made.run(stop)
    assert informers.calls == ["start", "wait", "wait", "wait"]
    stop.set()
    eventually(lambda: informers.calls[-1] == "stop")


def test_mgr_init_09_run_does_nothing_for_another_host(manager):
    manager(host=object()).run(threading.Event())
    manager().run(threading.Event())


def test_mgr_init_09_stop_ends_the_wait(manager, eventually):
    informers, stop = FakeInformers(syncs_after=10**9), threading.Event()
    made = manager(host=kubelet_host(informers))
    thread = threading.Thread(target=made.run, args=(stop,))
    thread.start()
    eventually(lambda: "wait" in informers.calls)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
