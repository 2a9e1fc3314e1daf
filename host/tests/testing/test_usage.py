"""What an author does wrong on the command line is said before anything runs; and what the plugin costs everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

PLUGIN = "complete_plugin:CompletePlugin"


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ("example.com/missing", "*no installed plugin has this name; there are: *kubernetes.io/empty-dir*"),
        ("no_such_module:Plugin", "*--volume-plugin no_such_module:Plugin: No module named 'no_such_module'*"),
        ("complete_plugin:Missing", "*module 'complete_plugin' has no attribute 'Missing'*"),
        (":Plugin", "*names no module*"),
    ],
)
def test_a_plugin_that_cannot_be_found(run_kit, plugin, message):
    result = run_kit(plugin)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(message)


@pytest.mark.parametrize(
    ("volumes", "message"),
    [
        ("kind: Pod\n", "*--volume-spec: *apiVersion: Required value*"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: a, emptyDr: {}}]}\n",
            "*volumes.yaml, document 1: $.spec.volumes[[]0].emptyDr: unknown field, did you mean emptyDir*",
        ),
    ],
)
def test_volumes_that_cannot_be_read(run_kit, volumes, message):
    result = run_kit(PLUGIN, volumes=volumes)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(message)


def test_a_distribution_whose_plugin_does_not_load_is_named(pytester, run_kit):
    info = pytester.mkdir("site") / "acme_broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[volumehost.plugins]\nbroken = acme_broken:Plugin\n")
    (info / "RECORD").write_text("acme_broken.py,,\nacme_broken-1.0.dist-info/METADATA,,\n")
    (pytester.path / "site" / "acme_broken.py").write_text("raise RuntimeError('no array here')\n")
    pytester.syspathinsert(pytester.path / "site")
    result = run_kit("example.com/broken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*broken of acme-broken does not load: RuntimeError: no array here*")


@pytest.mark.root
def test_volumes_of_others_are_named_as_not_tested(run_kit, filesystem_volume):
    volumes = filesystem_volume + "  - {name: cache, emptyDir: {}}\n"
    result = run_kit(PLUGIN, "example.com/complete::it_supports_its_own_volume", volumes=volumes)
    assert result.parseoutcomes()["passed"] == 1
    result.stdout.fnmatch_lines("volume plugin example.com/complete: it does not support cache, which is not tested")


@pytest.mark.root
def test_several_plugins_each_with_its_volumes(run_kit, filesystem_volume):
    volumes = filesystem_volume + "  - {name: cache, emptyDir: {}}\n"
    options = "--volume-plugin", "kubernetes.io/empty-dir", "-k", "it_can_be_set_up and not again and not another", "-v"
    result = run_kit(PLUGIN, *options, volumes=volumes)
    result.stdout.fnmatch_lines(
        ["example.com/complete::it_can_be_set_up PASSED*", "kubernetes.io/empty-dir::it_can_be_set_up PASSED*"]
    )


@pytest.mark.root
def test_the_checks_can_be_spread_over_processes(pytester, monkeypatch, filesystem_volume):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "support"))
    (pytester.path / "volumes.yaml").write_text(filesystem_volume)
    options = ["-p", "no:cacheprovider", "-n2", "--volume-plugin", PLUGIN, "--volume-spec", "volumes.yaml"]
    chosen = ["example.com/complete", "-k", "twice or tear_down_leaves"]
    assert pytester.runpytest_subprocess(*options, *chosen).parseoutcomes() == {"passed": 5}


def test_nobody_else_pays_for_it(pytester):
    """In an ordinary run nothing of volumehost is imported but the plugin's own small module."""
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            heavy = {"msgspec", "yaml", "sqlite3", "importlib_metadata", "prometheus_client", "click", "rich"}
            assert not heavy & set(sys.modules)
            ours = {name for name in sys.modules if name.partition(".")[0] == "volumehost"}
            assert ours == {"volumehost", "volumehost.testing", "volumehost.testing.pytest_plugin"}
        """
    )
    without = [f"-pno:{name}" for name in ("cacheprovider", "anyio", "benchmark", "hypothesispytest", "xdist")]
    pytester.runpytest_subprocess(*without).assert_outcomes(passed=1)


def test_fixtures_and_options_are_documented(pytester):
    listed = pytester.runpytest_inprocess("--fixtures", "-p", "no:cacheprovider").stdout.str()
    ours = listed.partition("fixtures defined from volumehost.testing.pytest_plugin")[2].partition("fixtures defined")[
        0
    ]
    for name in ("namespace", "volume_config", "api", "host", "plugins", "plugin_manager", "pod", "leaks"):
        assert f"volumehost_{name}" in ours
    assert "no docstring available" not in ours
    pytester.runpytest_inprocess("--help").stdout.fnmatch_lines(
        ["volume plugins (volumehost):", "*--volume-plugin=NAME*", "*--volume-spec=FILE*", "*--volume-timeout=SECONDS*"]
    )
    pytester.runpytest_inprocess("--markers").stdout.fnmatch_lines("*volume_conformance: *")
