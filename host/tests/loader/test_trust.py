"""The trust policy and the environment switches: what they exclude is never imported."""

from __future__ import annotations

import sys

import pytest

from volumehost.errors import InvalidPluginNameError, PluginNotFoundError
from volumehost.loader.origin import Origin
from volumehost.loader.prober import EntryPointProber
from volumehost.loader.trust import OWN_DISTRIBUTIONS, TrustPolicy


@pytest.fixture
def installed(importable, plugin_source):
    """Two distributions; one has two plugins. Importing a module leaves a trace."""
    for distribution, plugins in {"acme-disks": ["disk", "tape"], "beta-cloud": ["cloud"]}.items():
        package = distribution.replace("-", "_")
        files = {f"{package}/__init__.py": ""}
        for plugin in plugins:
            files[f"{package}/{plugin}.py"] = plugin_source(f"example.com/{plugin}", source=plugin)
        importable.add(distribution, "1.0", {plugin: f"{package}.{plugin}:Plugin" for plugin in plugins}, files)
    return importable


@pytest.fixture
def load(manager, installed):
    def load(policy):
        made = manager(trust=policy, prober=EntryPointProber(path=[installed.path]))
        states = {status.name: status.state for status in made.plugins()}
        for plugin in made.loaded_plugins():
            plugin.hold("a volume")  # imports the rest of the distribution ahead
        imported = {name for name in sys.modules if name.startswith(("acme_disks.", "beta_cloud."))}
        return states, {name.rpartition(".")[2] for name in imported}, made

    return load


ALL = {"disk", "tape", "cloud"}


def test_everything_is_loaded_by_default(load):
    states, imported, _ = load(TrustPolicy())
    assert states == {f"example.com/{name}": "active" for name in ALL}
    assert imported == ALL


@pytest.mark.parametrize(
    ("policy", "loaded"),
    [
        (TrustPolicy(deny=("acme-disks",)), {"cloud"}),
        (TrustPolicy(deny=("Acme_Disks",)), {"cloud"}),
        (TrustPolicy(deny=("acme-*",)), {"cloud"}),
        (TrustPolicy(deny=("*",)), set()),
        (TrustPolicy(allow=("beta-cloud",)), {"cloud"}),
        (TrustPolicy(allow=()), set()),
        (TrustPolicy(allow=("acme-*",), deny=("acme-disks",)), set()),
    ],
)
def test_excluded_distributions_are_listed_and_not_imported(load, policy, loaded):
    states, imported, _ = load(policy)
    assert imported == loaded
    assert set(states) == {f"example.com/{name}" for name in loaded} | (ALL - loaded)
    assert all((state == "active") == (name.startswith("example.com/")) for name, state in states.items())
    assert set(states.values()) <= {"active", "denied"}


def test_one_entry_point_of_a_distribution(load):
    states, imported, _ = load(TrustPolicy(deny=("tape",)))
    assert states == {"example.com/disk": "active", "example.com/cloud": "active", "tape": "denied"}
    assert imported == {"disk", "cloud"}, "importing the rest of the distribution ahead leaves it out"


def test_a_plugins_own_name_is_refused_after_the_import_and_without_retries(load):
    states, _, made = load(TrustPolicy(deny=("example.com/disk",)))
    assert states == {"example.com/disk": "denied", "example.com/tape": "active", "example.com/cloud": "active"}
    with pytest.raises(PluginNotFoundError):
        made.find_plugin_by_name("example.com/disk")
    assert made.errors() == [], "to be excluded is no error"


def test_only_a_plugins_name_imports_the_entry_points_that_may_be_it(load):
    states, imported, _ = load(TrustPolicy(allow=("example.com/cloud",)))
    assert states == {"disk": "denied", "tape": "denied", "example.com/cloud": "active"}
    assert imported == {"cloud"}


def test_only_a_plugins_name_still_compares_the_whole_name(load):
    states, _, _ = load(TrustPolicy(allow=("other.org/cloud",)))
    assert states == {"disk": "denied", "tape": "denied", "example.com/cloud": "denied"}


@pytest.mark.parametrize(
    ("environ", "allow", "deny"),
    [
        ({}, None, ()),
        ({"VOLUMEHOST_PLUGINS": ""}, None, ()),
        ({"VOLUMEHOST_PLUGINS": "none"}, (), ()),
        ({"VOLUMEHOST_PLUGINS": " a , b,"}, ("a", "b"), ()),
        ({"VOLUMEHOST_PLUGINS_DISABLE": "x, y"}, None, ("x", "y")),
        ({"VOLUMEHOST_PLUGINS": "a", "VOLUMEHOST_PLUGINS_DISABLE": "x"}, ("a",), ("x",)),
    ],
)
def test_the_environment_switches(environ, allow, deny):
    policy = TrustPolicy.from_environment(environ)
    assert (policy.allow, policy.deny) == (allow, deny)


def test_objects_that_are_handed_over_are_trusted(manager, base):
    made = manager(base("kubernetes.io/own"), trust=TrustPolicy(allow=(), deny=("*",)))
    assert made.init_errors == []
    assert made.find_plugin_by_name("kubernetes.io/own")


def test_mgr_name_07_the_reserved_namespace_is_for_the_listed_distributions(importable, manager, plugin_source):
    importable.add("acme-k8s", "1.0", {"x": "acme_k8s:Plugin"}, {"acme_k8s.py": plugin_source("kubernetes.io/nfs")})
    prober = EntryPointProber(path=[importable.path])
    made = manager(prober=prober)
    (error,) = made.errors()
    assert isinstance(error, InvalidPluginNameError)
    assert "reserved for" in error.reason
    for name in OWN_DISTRIBUTIONS:
        assert name in error.reason
    allowed = manager(
        trust=TrustPolicy(reserved_distributions=("acme-k8s",)), prober=EntryPointProber(path=[importable.path])
    )
    assert allowed.find_plugin_by_name("kubernetes.io/nfs")


def test_the_projects_own_distributions_may_use_the_reserved_namespace():
    for distribution in OWN_DISTRIBUTIONS:
        assert TrustPolicy().name_faults("kubernetes.io/x", Origin(distribution, "1", "x")) == []
    assert TrustPolicy().name_faults("kubernetes.io/x", Origin("volumehost-hostpath2", "1", "x"))
    assert TrustPolicy().name_faults("example.com/x", Origin("anything", "1", "x")) == []


@pytest.mark.parametrize(
    ("policy", "unmatched"),
    [
        (TrustPolicy(), ()),
        (TrustPolicy(deny=("acme-*", "example.com/disk", "disk", "acme-disk")), ()),
        (TrustPolicy(deny=("acme-dsk",)), ("acme-dsk",)),
        (TrustPolicy(allow=("acme-disk", "other.org/cloud"), deny=("x",)), ("other.org/cloud", "x")),
    ],
)
def test_entries_that_name_nothing_installed(policy, unmatched):
    assert policy.unmatched([("acme-disk", "disk", "example.com/disk")]) == unmatched
