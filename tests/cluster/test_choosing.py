"""Which cluster a command works on, if any; and what is told when that cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from volumehost.testing.api_server import Rule

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
SPEC = {"containers": [{"name": "c", "image": "i"}]}


@pytest.fixture(autouse=True)
def pod(server):
    return server.objects.put({**POD, "spec": SPEC})


def test_a_kubeconfig_in_the_environment_alone_touches_no_cluster(run, server, kubeconfig, monkeypatch):
    """Whoever has kubectl set up must not change a cluster unawares."""
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    done = run("get", "pods")
    assert (done.code, done.out) == (0, "")
    assert server.requests.all() == []


def test_the_option_and_the_own_variable_choose_one(run, kubeconfig, monkeypatch, root_dir):
    assert "web" in run("--kubeconfig", kubeconfig, "get", "pods").out
    assert "web" in run("get", "pods", "--kubeconfig", kubeconfig).out
    monkeypatch.setenv("VOLUMEHOST_KUBECONFIG", kubeconfig)
    assert "web" in run("get", "pods").out
    assert not root_dir.exists()


def test_a_context_is_looked_for_where_kubectl_looks(run, kubeconfig, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    assert "web" in run("--context", "test", "get", "pods").out


def test_a_context_that_is_not_there_is_told_with_those_that_are(run, kubeconfig):
    done = run("--kubeconfig", kubeconfig, "--context", "tset", "get", "pods")
    assert done.code == 1
    assert "tset" in done.err
    assert "test" in done.err.replace("tset", "")


def test_the_namespace_is_the_contexts(run, server, tmp_path):
    server.objects.put({**POD, "metadata": {"name": "other", "namespace": "team"}, "spec": SPEC})
    config = server.kubeconfig(tmp_path / "team", namespace="team")
    assert run("--kubeconfig", config, "get", "pods", "-o", "name").out == "pod/other\n"
    assert run("--kubeconfig", config, "get", "pods", "-n", "default", "-o", "name").out == "pod/web\n"


def test_a_kubeconfig_that_is_not_there(run, tmp_path):
    done = run("--kubeconfig", tmp_path / "none", "get", "pods")
    assert done.code == 1
    assert f"{tmp_path}/none: there is no such file" in done.err


def test_in_cluster_outside_of_one(run, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = run("--in-cluster", "get", "pods")
    assert done.code == 1
    assert "no pod of a cluster" in done.err
    assert run("--in-cluster", "--context", "test", "get", "pods").code == 2


def test_a_server_that_cannot_be_reached_is_named(volumehost, server):
    with server.unreachable():
        done = volumehost("get", "pods")
    assert done.code == 1
    assert server.url in done.err


def test_expired_credentials_are_told_as_such(volumehost, server):
    server.revoke("admin")
    done = volumehost("get", "pods")
    assert done.code == 1
    assert "credentials" in done.err


def test_what_is_forbidden_is_named_with_the_verb_and_what_to_do(volumehost, server):
    server.deny(verb="list", resource="pods")
    done = volumehost("get", "pods")
    assert done.code == 1
    assert "list pods" in done.err
    assert "volumehost rbac" in done.err


def test_a_server_that_asks_to_come_later_is_asked_later(volumehost, server):
    server.faults.add(Rule(verb="list", resource="pods", code=429, retry_after=0, times=1))
    assert "web" in volumehost("get", "pods").out


def test_without_the_client_library_it_is_told_what_to_install(run, kubeconfig, monkeypatch):
    assert run("--kubeconfig", kubeconfig, "get", "pods").code == 0  # everything but that library is loaded
    for name in [each for each in sys.modules if each.partition(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if "Editable" not in repr(each)])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    done = run("--kubeconfig", kubeconfig, "get", "pods")
    assert done.code == 1
    assert "pip install 'volumehost[kubernetes]'" in done.err


@pytest.mark.parametrize(
    ("command", "instead"), [("mount", "apply the pod"), ("unmount", "delete the pod")], ids=["mount", "unmount"]
)
def test_what_agents_do_is_refused(volumehost, server, command, instead):
    done = volumehost(command, "web")
    assert done.code == 1
    assert instead in done.err
    assert server.requests.all() == []


def test_advice_names_the_cluster_too(run, kubeconfig):
    done = run("--kubeconfig", kubeconfig, "status", "none")
    assert done.code == 3
    assert f"volumehost --kubeconfig {kubeconfig} status" in done.err


def test_completion_offers_the_clusters_names_and_options_without_asking_it(kubeconfig, server, monkeypatch, capsys):
    from volumehost.cli import main

    monkeypatch.setenv("_VOLUMEHOST_COMPLETE", "bash_complete")

    def complete(words: str) -> str:
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - (0 if words.endswith(" ") else 1)))
        main([])
        return capsys.readouterr().out

    assert "--kubeconfig" in complete("volumehost --kube")
    assert server.requests.all() == []
    assert "web" in complete(f"volumehost --kubeconfig {kubeconfig} describe pod ")


def test_kubeconfig_of_the_fake_server_has_one_context(kubeconfig):
    assert yaml.safe_load(Path(kubeconfig).read_text())["current-context"] == "test"
