"""``plugins list|show|check`` with real distributions on the path, good and bad ones."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

OWN = (
    "kubernetes.io/configmap",
    "kubernetes.io/csi",
    "kubernetes.io/downward-api",
    "kubernetes.io/empty-dir",
    "kubernetes.io/host-path",
    "kubernetes.io/projected",
    "kubernetes.io/secret",
)

BAD = {
    "raises-at-import": ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
    "exits-at-import": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "misses-a-module": ("import missing_dep", "missing module 'missing_dep'"),
    "syntax-error": ("def broken(:", "SyntaxError"),
}


def statuses(done) -> dict[str, dict]:
    return {each["name"]: each for each in done.json()["plugins"]}


def test_list_shows_plugin_distribution_version_interfaces_and_state(volumehost) -> None:
    done = volumehost("plugins", "list")
    assert done.code == 0
    assert done.err == ""
    head, *rows = done.lines()
    assert head.split() == ["NAME", "DISTRIBUTION", "VERSION", "INTERFACES", "STATE"]
    by_name = {row.split()[0]: row.split() for row in rows}
    assert by_name["kubernetes.io/host-path"][1] == "volumehost-hostpath"
    assert "Provisionable" in by_name["kubernetes.io/host-path"][3]
    assert by_name["kubernetes.io/empty-dir"][-1] == "active"


def test_names_alone_are_one_a_line(volumehost) -> None:
    assert volumehost("plugins", "list", "-o", "name").lines() == list(OWN)


def test_the_shape_of_a_plugin_in_json_and_yaml(volumehost) -> None:
    done = volumehost("plugins", "list", "-o", "json")
    shape = statuses(done)["kubernetes.io/empty-dir"]
    assert list(shape) == [
        "name",
        "state",
        "detail",
        "hint",
        "distribution",
        "version",
        "installedVersion",
        "entryPoint",
        "object",
        "location",
        "file",
        "interfaces",
        "hooks",
        "users",
        "notes",
    ]
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(volumehost("-o", "yaml", "plugins", "list").out) == json.loads(done.out)


@pytest.mark.parametrize("name", BAD)
def test_br03_br04_a_plugin_that_cannot_be_imported_is_listed_with_its_cause(
    volumehost, site, plugin_source: Callable[..., str], name: str
) -> None:
    top, cause = BAD[name]
    site.install(f"acme-{name}", plugin_source("acme.example.com/bad", top=top))
    site.install("acme-good", plugin_source("acme.example.com/good"))
    done = volumehost("plugins", "list", "-o", "json", environment=site.environment)
    assert done.code == 0
    found = statuses(done)
    assert found["acme.example.com/good"]["state"] == "active"
    assert all(found[own]["state"] == "active" for own in OWN)
    bad = found[f"acme-{name}"]
    assert (bad["state"], bad["distribution"], bad["version"]) == ("failed", f"acme-{name}", "1.0")
    assert cause in bad["detail"]
    text = volumehost("plugins", "list", environment=site.environment)
    (line,) = [line for line in text.lines() if line.startswith(f"acme-{name}")]
    assert "failed" in line
    assert cause in line
    assert text.err == ""

    check = volumehost("plugins", "check", environment=site.environment)
    assert check.code == 1
    assert cause in check.out
    assert f"to do: repair it: pip install -U acme-{name}" in check.out
    assert volumehost("plugins", "check", "acme-good", environment=site.environment).code == 0
    assert volumehost("plugins", "check", f"acme-{name}", environment=site.environment).code == 1


def test_br17_a_misspelt_hook_is_told_with_the_right_name(volumehost, site, plugin_source) -> None:
    site.install("acme-typo", plugin_source("acme.example.com/typo").replace("def new_mounter", "def new_mountr"))
    done = volumehost("plugins", "check", "-o", "json", environment=site.environment)
    assert done.code == 1
    (problem,) = done.json()["problems"]
    assert "new_mountr" in problem["reason"]
    assert "new_mounter" in problem["reason"]
    assert problem["hint"]


MISBEHAVING = {
    "raises": ("raise OSError('server is away')", "OSError: server is away"),
    "exits": ("raise SystemExit(5)", "SystemExit: 5"),
    "wrong-type": ("return 'yes'", "'yes', not a bool"),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_a_plugin_that_misbehaves_when_asked_is_set_aside_and_the_rest_work(
    volumehost, site, plugin_source, name: str
) -> None:
    body, cause = MISBEHAVING[name]
    site.install(f"acme-{name}", plugin_source("acme.example.com/bad", can_support=body))
    done = volumehost("plugins", "check", "-o", "json", environment=site.environment)
    assert done.code == 1
    found = statuses(done)
    assert found["acme.example.com/bad"]["state"] == "set aside"
    assert cause in found["acme.example.com/bad"]["detail"]
    assert all(found[own]["state"] == "active" for own in OWN)


INIT = """return False

    @hookimpl
    def init(self, host):
        import os
        os.makedirs(host.get_plugin_dir("acme.example.com/started") + "/cache", exist_ok=True)
        print("began in", host.get_pods_dir())
        {then}
"""


def test_check_initialises_plugins_and_tells_what_refuses(volumehost, site, plugin_source, tmp_path) -> None:
    body = INIT.format(then="raise OSError('no licence')")
    site.install("acme-started", plugin_source("acme.example.com/started", can_support=body))
    environment = {**site.environment, "TMPDIR": str(tmp_path)}
    done = volumehost("plugins", "check", "-o", "json", environment=environment)
    assert done.code == 1
    found = statuses(done)
    assert found["acme.example.com/started"]["state"] == "failed"
    assert "no licence" in found["acme.example.com/started"]["detail"]
    assert all(found[own]["state"] == "active" for own in OWN)
    assert f"began in {tmp_path}" in done.err
    assert list(tmp_path.glob("volumehost-trial-*")) == []
    # To list plugins none has to begin its work.
    assert (
        statuses(volumehost("plugins", "list", "-o", "json", environment=environment))["acme.example.com/started"][
            "state"
        ]
        == "active"
    )


def test_check_leaves_nothing_of_a_plugin_that_starts(volumehost, site, plugin_source, tmp_path) -> None:
    site.install("acme-started", plugin_source("acme.example.com/started", can_support=INIT.format(then="")))
    done = volumehost("plugins", "check", environment={**site.environment, "TMPDIR": str(tmp_path)})
    assert done.code == 0
    assert list(tmp_path.glob("volumehost-trial-*")) == []


def test_a_plugin_that_hangs_when_asked_is_set_aside_and_the_rest_work(volumehost, site, plugin_source) -> None:
    site.install(
        "acme-hang",
        plugin_source("acme.example.com/hang", top="import threading", can_support="threading.Event().wait()"),
    )
    done = volumehost("plugins", "check", "-o", "json", environment=site.environment)
    assert done.code == 1
    found = statuses(done)
    assert found["acme.example.com/hang"]["state"] == "set aside"
    assert "did not come back" in found["acme.example.com/hang"]["detail"]
    assert all(found[own]["state"] == "active" for own in OWN)


def test_of_a_plugin_that_raises_when_asked_is_told_how_to_exclude_it(volumehost, site, plugin_source) -> None:
    site.install("acme-raise", plugin_source("acme.example.com/raise", can_support="raise RuntimeError('boom')"))
    done = volumehost("plugins", "check", "acme-raise", environment=site.environment)
    assert done.code == 1
    assert "can_support: RuntimeError: boom\n  to do: ask the author of the plugin" in done.out
    assert "exclude it: VOLUMEHOST_PLUGINS_DISABLE=acme.example.com/raise" in done.out


def test_two_plugins_that_answer_for_the_same_volumes_are_told(volumehost, site, plugin_source) -> None:
    for name in ("one", "two"):
        body = "return spec.volume is not None and spec.volume.nfs is not None"
        site.install(f"acme-{name}", plugin_source(f"acme.example.com/{name}", can_support=body))
    done = volumehost("plugins", "check", environment=site.environment)
    assert done.code == 1
    assert "all of acme.example.com/one, acme.example.com/two answer for nfs volumes" in done.out
    assert "to do: exclude or uninstall all but one of them: VOLUMEHOST_PLUGINS_DISABLE names" in done.out
    assert volumehost("plugins", "check", "volumehost-emptydir", environment=site.environment).code == 0


def test_br09_two_distributions_with_one_plugin_name_are_both_shown_in_conflict(
    volumehost, site, plugin_source
) -> None:
    for name in ("a", "b"):
        site.install(f"acme-{name}", plugin_source("vendor.example.com/disk"))
    done = volumehost("plugins", "list", "-o", "json", environment=site.environment)
    both = [each for each in done.json()["plugins"] if each["name"] == "vendor.example.com/disk"]
    assert [(each["distribution"], each["state"]) for each in both] == [("acme-a", "active"), ("acme-b", "conflict")]
    assert "acme-b" in both[0]["detail"]
    assert volumehost("plugins", "check", environment=site.environment).code == 1


def test_br82_a_plugin_for_another_host_is_incompatible_and_not_imported(volumehost, site, plugin_source) -> None:
    marker = site.path / "imported"
    top = f"open({str(marker)!r}, 'w').close()"
    site.install("acme-old", plugin_source("acme.example.com/old", top=top), requires=["volumehost<0.0.1"])
    done = volumehost("plugins", "list", environment=site.environment)
    (line,) = [line for line in done.lines() if line.startswith("acme-old")]
    assert "volumehost" in line
    assert not marker.exists()


@pytest.mark.parametrize(
    "switch", [{"VOLUMEHOST_PLUGINS_DISABLE": "acme-denied"}, {"VOLUMEHOST_PLUGINS": "volumehost-*"}], ids=str
)
def test_listing_never_imports_what_is_denied(volumehost, site, plugin_source, switch: dict[str, str]) -> None:
    marker = site.path / "imported"
    site.install("acme-denied", plugin_source("acme.example.com/denied", top=f"open({str(marker)!r}, 'w').close()"))
    environment = {**site.environment, **switch}
    done = volumehost("plugins", "list", environment=environment)
    (line,) = [line for line in done.lines() if line.startswith("acme-denied")]
    assert "denied" in line
    assert not marker.exists()
    show = volumehost("plugins", "show", "acme-denied", environment=environment)
    assert show.code == 0
    assert "State:         denied" in show.out
    assert volumehost("plugins", "check", environment=environment).code == 0
    assert not marker.exists()
    assert volumehost("plugins", "list", environment=site.environment).code == 0
    assert marker.exists()  # so the marker does tell


def test_with_all_plugins_switched_off_there_is_still_a_list(volumehost) -> None:
    done = volumehost("plugins", "list", environment={"VOLUMEHOST_PLUGINS": "none"})
    assert done.code == 0
    assert [line.split()[-1] for line in done.lines()[1:]] != []
    assert all("denied" in line for line in done.lines()[1:])


@pytest.mark.parametrize("name", ["kubernetes.io/host-path", "hostpath", "volumehost-hostpath"])
def test_show_tells_everything_by_any_of_its_names(volumehost, name: str) -> None:
    done = volumehost("plugins", "show", name)
    assert done.code == 0
    for word in (
        "kubernetes.io/host-path",
        "volumehost-hostpath",
        "hostpath = volumehost_hostpath.",
        "Location:",
        "volumehost_hostpath/plugin.py",
        "DeletableVolumePlugin",
        "new_mounter",
    ):
        assert word in done.out


def test_show_of_a_failed_plugin_says_why_and_what_to_do(volumehost, site, plugin_source) -> None:
    site.install("acme-bad", plugin_source("acme.example.com/bad", top="import missing_dep"))
    done = volumehost("plugins", "show", "acme-bad", environment=site.environment)
    assert done.code == 0
    assert "missing module 'missing_dep'" in done.out
    assert "pip install -U acme-bad" in done.out


@pytest.mark.parametrize("command", ["show", "check"])
def test_an_unknown_plugin_is_not_found(volumehost, command: str) -> None:
    done = volumehost("plugins", command, "nobody.example.com/nothing")
    assert done.code == 3
    assert "nobody.example.com/nothing" in done.err
    assert "kubernetes.io/empty-dir" in done.err


def test_notes_for_authors_are_shown(volumehost, site, plugin_source) -> None:
    source = plugin_source("acme.example.com/noted") + "\n    def get_access_modes(self):\n        return []\n"
    site.install("acme-noted", source)
    done = volumehost("plugins", "show", "acme-noted", environment=site.environment)
    assert done.code == 0
    assert "get_access_modes that is not marked with @hookimpl" in done.out


def test_text_from_plugins_cannot_steer_the_terminal(volumehost, site, plugin_source) -> None:
    site.install("acme-evil", plugin_source("acme.example.com/evil", top="raise RuntimeError('\\x1b[2Jgone')"))
    for command in ("list", "check"):
        done = volumehost("plugins", command, environment=site.environment)
        assert "\x1b" not in done.out + done.err
        assert "\\x1b[2Jgone" in done.out


@pytest.mark.parametrize("command", ["list", "check"])
def test_a_switch_that_names_nothing_installed_is_told(volumehost, command: str) -> None:
    """A misspelled name would otherwise exclude nothing without a word; one of a driver is no mistake."""
    environment = {"VOLUMEHOST_PLUGINS_DISABLE": "volumehost-cis,volumehost-loop-driver,volumehost-hostpath"}
    done = volumehost("plugins", command, environment=environment)
    assert done.code == 0
    assert done.err == (
        "note: VOLUMEHOST_PLUGINS_DISABLE names volumehost-cis, which no installed plugin or driver is called\n"
    )
