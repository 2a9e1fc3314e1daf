"""``volumehost rbac``: manifests that an API server takes, for the account that the daemon runs with."""

from __future__ import annotations

import json

import pytest
import yaml

from volumehost.cli import main


@pytest.fixture
def rbac(capsys):
    """Run the command within this process: it reads and writes nothing."""

    def run(*arguments: str) -> str:
        assert main(["rbac", *arguments]) == 0
        done = capsys.readouterr()
        assert done.err == ""
        return done.out

    return run


def documents(text):
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("role", ["node", "controller"])
def test_an_account_gets_the_roles_and_nothing_else_has_a_part_in_it(rbac, role):
    objects = documents(rbac("--role", role))
    account, *rest = objects
    assert account["kind"] == "ServiceAccount"
    subject = {"kind": "ServiceAccount", **{key: account["metadata"][key] for key in ("name", "namespace")}}
    roles = {(each["kind"], each["metadata"]["name"]): each for each in rest if not each["kind"].endswith("Binding")}
    bindings = [each for each in rest if each["kind"].endswith("Binding")]
    assert bindings
    for binding in bindings:
        reference = binding["roleRef"]
        assert reference.pop("apiGroup") == "rbac.authorization.k8s.io"
        granted = roles.pop((reference["kind"], reference["name"]))
        assert binding["kind"] == f"{granted['kind']}Binding"
        assert binding["metadata"].get("namespace") == granted["metadata"].get("namespace")
        assert binding["subjects"] == [subject]
    assert roles == {}, "roles that nobody has"


@pytest.mark.parametrize("role", ["node", "controller"])
def test_no_permission_is_given_by_a_star(rbac, role):
    for each in documents(rbac("--role", role)):
        for rule in each.get("rules", ()):
            assert rule["verbs"]
            assert rule["resources"]
            assert len(rule["apiGroups"]) == 1
            assert not any("*" in words for values in rule.values() for words in values)


def test_nobody_may_list_secrets(rbac):
    """Whoever has a node must not have every secret at once."""
    for role in ("node", "controller"):
        for each in documents(rbac("--role", role)):
            for rule in each.get("rules", ()):
                assert "secrets" not in rule["resources"] or not {"list", "watch"} & set(rule["verbs"])


def test_terms_of_leaders_are_only_in_the_daemons_own_namespace(rbac):
    objects = documents(rbac("--role", "controller"))
    with_leases = [each for each in objects if any("leases" in rule["resources"] for rule in each.get("rules", ()))]
    assert [each["kind"] for each in with_leases] == ["Role"]


def test_account_and_namespace_are_as_given(rbac):
    objects = documents(rbac("--role", "controller", "-n", "storage", "--service-account", "vh"))
    assert (objects[0]["metadata"]["name"], objects[0]["metadata"]["namespace"]) == ("vh", "storage")
    for each in objects:
        assert each["metadata"].get("namespace", "storage") == "storage"
        for subject in each.get("subjects", ()):
            assert (subject["name"], subject["namespace"]) == ("vh", "storage")


def test_json_is_one_list_of_the_same(rbac):
    data = json.loads(rbac("--role", "node", "-o", "json"))
    assert (data["apiVersion"], data["kind"]) == ("v1", "List")
    assert data["items"] == documents(rbac("--role", "node", "-o", "yaml"))


def test_names(rbac):
    assert rbac("--role", "node", "-o", "name").splitlines()[:2] == [
        "serviceaccount/volumehost-agent",
        "clusterrole/volumehost-agent",
    ]


def test_what_drivers_need_is_more(rbac):
    plain = documents(rbac("--role", "controller"))
    more = documents(rbac("--role", "controller", "--csi-driver"))
    assert [each["kind"] for each in more] == [each["kind"] for each in plain]
    assert len(more[1]["rules"]) > len(plain[1]["rules"])
    assert main(["rbac", "--role", "node", "--csi-driver"]) == 2


def test_a_role_must_be_named(capsys):
    assert main(["rbac"]) == 2
    assert "--role" in capsys.readouterr().err
