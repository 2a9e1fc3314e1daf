"""Plugins from real wheels that are broken, incompatible, excluded, or claim the same name."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.root, pytest.mark.slow]


def broken_wheel(wheels, directory, name, code, **options):
    package = name.replace("-", "_")
    return wheels.make_wheel(
        directory, name, files={f"{package}.py": code}, entry_points={name: f"{package}:Plugin"}, **options
    )


def test_br03_br04_two_broken_plugins_among_two_good_ones(environment, start_host, wheels, tmp_path):
    environment.install(
        wheels.make_plugin_wheel(tmp_path, "acme-a", plugin="example.com/a"),
        broken_wheel(wheels, tmp_path, "acme-b", "import not_there\n"),
        wheels.make_plugin_wheel(tmp_path, "acme-c", plugin="example.com/c"),
        broken_wheel(wheels, tmp_path, "acme-d", "import sys\nsys.exit(3)\n"),
    )
    host = start_host()
    states = {name: status["state"] for name, status in host.statuses().items()}
    assert states == {"example.com/a": "active", "acme-b": "failed", "example.com/c": "active", "acme-d": "failed"}
    first, second = sorted(error for error in host("errors") if "acme-" in error)
    assert "acme-b 1.0 (entry point acme-b): missing module 'not_there'" in first
    assert "acme-d 1.0 (entry point acme-d): it tried to end the process (SystemExit: 3)" in second
    environment.uninstall("acme-b")
    assert "acme-b" not in host.statuses(), "and the one that is removed is gone"
    without = start_host(VOLUMEHOST_PLUGINS_DISABLE="acme-d")
    assert without.status("acme-d")["state"] == "denied"
    assert not [error for error in without("errors") if "acme-" in error]


def test_br05_the_missing_dependency_is_installed_later(environment, start_host, wheels, tmp_path):
    good = wheels.make_plugin_wheel(tmp_path, "acme-good", plugin="example.com/good")
    needs = wheels.make_plugin_wheel(
        tmp_path, "acme-needs", plugin="example.com/needs", files={"acme_needs/__init__.py": "import acme_dependency\n"}
    )
    dependency = wheels.make_wheel(tmp_path, "acme-dependency", files={"acme_dependency.py": "x = 1\n"})
    host = start_host()
    environment.install(needs, good)
    assert host("find", name="example.com/good")
    assert host.error("find", name="example.com/needs") == "PluginNotFoundError"
    environment.install(dependency)
    assert host("find", name="example.com/needs")["version"] == "1.0"
    assert [error for error in host("errors") if "acme" in error] == []


def test_br82_installed_without_regard_to_what_it_requires(environment, start_host, wheels, tmp_path):
    environment.install(
        wheels.make_plugin_wheel(
            tmp_path,
            "acme-old",
            plugin="example.com/old",
            requires=("volumehost<0.1",),
            files={"acme_old/__init__.py": "raise AssertionError('imported')\n"},
        )
    )
    host = start_host()
    status = host.status("main")
    assert status["state"] == "incompatible"
    assert "it requires volumehost <0.1, this is" in status["detail"]
    assert host("modules", prefix="acme_old") == []


def test_br09_two_distributions_with_one_name(environment, start_host, wheels, tmp_path):
    for name in ("acme-b", "acme-a"):
        environment.install(wheels.make_plugin_wheel(tmp_path, name, plugin="vendor.io/disk"))
    for _ in range(2):
        host = start_host()
        assert host("find", name="vendor.io/disk")["distribution"] == "acme-a"
    states = {each["distribution"]: each["state"] for each in host("plugins") if each["name"] == "vendor.io/disk"}
    assert states == {"acme-a": "active", "acme-b": "conflict"}
    environment.uninstall("acme-a")
    assert host("find", name="vendor.io/disk")["distribution"] == "acme-b"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"VOLUMEHOST_PLUGINS": "none"}, set()),
        ({"VOLUMEHOST_PLUGINS": "acme-b"}, {"b"}),
        ({"VOLUMEHOST_PLUGINS": "example.com/a,acme-c"}, {"a", "c"}),
        ({"VOLUMEHOST_PLUGINS_DISABLE": "acme-a,acme-b"}, {"c"}),
    ],
)
def test_the_switches_exclude_without_importing(environment, start_host, wheels, tmp_path, variables, expected):
    trace = tmp_path / "trace"
    trace.mkdir()
    for name in "abc":
        leave = f"import pathlib\npathlib.Path({str(trace / name)!r}).touch()\n"
        environment.install(
            wheels.make_plugin_wheel(
                tmp_path,
                f"acme-{name}",
                plugin=f"example.com/{name}",
                files={f"acme_{name}/__init__.py": leave},
                entry_points={name: f"acme_{name}.plugin:Plugin"},
            )
        )
    host = start_host(**variables)
    states = {each["distribution"]: each["state"] for each in host.statuses().values()}
    assert states == {f"acme-{name}": "active" if name in expected else "denied" for name in "abc"}
    assert {path.name for path in trace.iterdir()} == expected
