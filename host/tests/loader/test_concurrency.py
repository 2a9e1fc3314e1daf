"""BR-19: plugins come and go while threads look them up and call them."""

from __future__ import annotations

import sys
import threading

import pytest

from volumehost import hookimpl
from volumehost.errors import NoPluginMatchedError, PluginNotFoundError


@pytest.fixture
def _many_switches():
    """Threads take turns far more often than usual: more orders of events in less time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_many_switches")
@pytest.mark.parametrize("wrapped", [False, True])
def test_br19_eight_threads_look_up_and_call_while_plugins_come_and_go(manager, base, prober, spec_of, wrapped):
    made = manager(base("example.com/steady", "csi"), prober=prober, settle=0.0)
    if wrapped:

        class Wrapper:
            @hookimpl(wrapper=True)
            def new_mounter(self):
                return (yield)

        made.register_hook_wrapper(Wrapper())
    stop = threading.Event()
    failures = []
    calls = [0] * 8

    def work(number):
        try:
            while not stop.is_set():
                steady = made.find_plugin_by_spec(spec_of("csi"))
                assert steady.name == "example.com/steady"
                assert steady.new_mounter("s", "p") == ("mounter", "s", "p")
                try:
                    plugin = made.find_plugin_by_spec(spec_of("nfs"))
                    plugin.hold(f"user {number}")
                except (NoPluginMatchedError, PluginNotFoundError):
                    continue
                try:
                    assert not plugin.plugin.shut, "a plugin that is held is not shut down"
                    assert plugin.new_mounter("s", number) == ("mounter", "s", number)
                    calls[number] += 1
                    assert not plugin.plugin.shut
                finally:
                    plugin.release(f"user {number}")
        except BaseException as error:
            failures.append(error)

    class Coming(base):
        shut = False

        @hookimpl
        def init(self, host):
            super().init(host)
            self.shut = False  # one that was taken back, since the former was held again, is started once more

        @hookimpl
        def shutdown(self):
            self.shut = True

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100 if wrapped else 500):
            prober.add(Coming("example.com/coming"))
            made.plugins()
            prober.remove("example.com/coming")
            made.plugins()
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    assert sum(calls) > 0


def test_a_snapshot_once_taken_does_not_change(manager, base, prober):
    made = manager(base("example.com/a"), prober=prober)
    before = made._refresher.snapshot
    prober.add(base("example.com/b", "csi"))
    made.plugins()
    assert set(before.by_name) == {"example.com/a"}
    assert set(made._refresher.snapshot.by_name) == {"example.com/a", "example.com/b"}
