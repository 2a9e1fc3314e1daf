"""Plugins that print, that refuse to start, and that raise what nobody expects, as the user of a command sees them."""

from __future__ import annotations

import json

import pytest

MEMORY = "emptyDir: {medium: Memory}"
NFS = "nfs: {server: nfs.example.com, path: /}"
SERVES_NFS = "return spec.volume is not None and spec.volume.nfs is not None"
LOUD = "import os; print('noise'); os.system('echo noise of a program')"


@pytest.fixture
def bad(site, plugin_source):
    """Installs the plugin ``acme.example.com/bad`` for nfs volumes; ``body`` is what its ``new_mounter`` does."""

    def install(body: str = "raise NotImplementedError", *, init: str = "pass", can_support: str = SERVES_NFS) -> None:
        source = plugin_source("acme.example.com/bad", can_support=can_support, top="import os, sys")
        new_mounter = "def new_mounter(self, spec, pod):\n        raise NotImplementedError"
        assert new_mounter in source
        source = source.replace(new_mounter, new_mounter.replace("raise NotImplementedError", body))
        source += f"\n    @hookimpl\n    def init(self, host):\n        {init}\n"
        site.install("acme-bad", source)

    return install


@pytest.mark.root
@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('Odd', (BaseException,), {})('strange')", "Odd: strange"),
        ("raise SystemExit(3)", "it tried to end the process (SystemExit: 3)"),
        ("raise MemoryError", "MemoryError"),
    ],
)
def test_br03_whatever_a_plugin_raises_while_mounting_is_told_and_the_others_are_mounted(
    volumehost, manifest, pod_manifest, mounts_below, site, bad, raised: str, told: str
) -> None:
    bad(raised)
    text = pod_manifest(good=MEMORY, wrong=NFS)
    done = volumehost("mount", "-f", manifest(text), environment=site.environment)
    assert done.code == 1
    assert "MountVolume.NewMounter initialization failed" in done.err
    assert f": {told}\n" in done.err
    assert "next retry in" in done.err
    assert len(mounts_below(volumehost.root_dir)) == 1
    assert volumehost("unmount", "web", environment=site.environment).code == 0


@pytest.mark.root
def test_a_plugin_whose_init_fails_is_told_with_the_cause(volumehost, manifest, pod_manifest, site, bad) -> None:
    bad(init="raise RuntimeError('no licence')")
    done = volumehost("mount", "-f", manifest(pod_manifest(good=MEMORY, wrong=NFS)), environment=site.environment)
    assert done.code == 1
    assert "1 plugin(s) did not load: acme.example.com/bad (" in done.err
    assert "error: RuntimeError: no licence)" in done.err


@pytest.mark.parametrize("command", ["list", "check", "show"])
def test_what_a_plugin_prints_does_not_get_into_the_result(volumehost, site, plugin_source, command: str) -> None:
    site.install("acme-loud", plugin_source("acme.example.com/loud", can_support=f"{LOUD}; return False", top=LOUD))
    names = ["acme.example.com/loud"] if command == "show" else []
    done = volumehost("plugins", command, *names, "-o", "json", environment=site.environment)
    assert done.code == 0
    assert done.json()
    assert "noise of a program" in done.err


@pytest.mark.root
def test_what_a_plugin_prints_while_mounting_does_not_get_into_the_result(
    volumehost, manifest, pod_manifest, site, bad
) -> None:
    bad(f"{LOUD}; raise OSError('away')", init=LOUD)
    done = volumehost("mount", "-f", manifest(pod_manifest(wrong=NFS)), "-o", "json", environment=site.environment)
    assert done.code == 1
    assert json.loads(done.out)["pods"][0]["volumes"][0]["volume"] == "wrong"
    assert "noise of a program" in done.err
    done = volumehost("unmount", "web", "-o", "json", environment=site.environment)
    assert done.json() == {"unmounted": ["default/web"]}


@pytest.mark.root
def test_a_hint_is_a_command_line_that_works_in_another_namespace_too(volumehost, manifest, pod_manifest) -> None:
    path = manifest(pod_manifest(good=MEMORY, wrong=NFS))
    done = volumehost("-n", "prod", "mount", "-f", path)
    assert done.code == 1
    assert "'volumehost mount -n prod web' tries again, 'volumehost unmount -n prod web' takes all away" in done.err
    assert volumehost("unmount", "-n", "prod", "web").code == 0
