"""The manifests in ``deploy/``: pods that volumehost itself takes, options that exist, the permissions of rbac."""

from __future__ import annotations

import re

import click
import pytest
import yaml

from volumehost.api.convert import decode_wire, to_object
from volumehost.api.defaults import set_defaults
from volumehost.api.kinds import kind_for
from volumehost.api.objects import Pod
from volumehost.api.validation import validate_create
from volumehost.cli import main, program

WORKLOADS = {"agent.yaml": "DaemonSet", "controller.yaml": "Deployment"}
ROLES = {"agent": "node", "controller": "controller"}

#: What the API server knows of a workload beside its template.
SPEC_FIELDS = {
    "DaemonSet": {"selector", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit"},
    "Deployment": {"selector", "template", "strategy", "replicas", "minReadySeconds", "revisionHistoryLimit"},
}


@pytest.fixture(scope="module")
def deploy(pytestconfig):
    return pytestconfig.rootpath / "deploy"


@pytest.fixture(params=WORKLOADS)
def workload(request, deploy):
    return yaml.safe_load((deploy / request.param).read_text())


@pytest.fixture
def template(workload):
    return workload["spec"]["template"]


@pytest.fixture
def container(template):
    (found,) = template["spec"]["containers"]
    return found


def test_the_kustomization_names_every_manifest(deploy):
    named = yaml.safe_load((deploy / "kustomization.yaml").read_text())["resources"]
    assert sorted(named) == sorted(path.name for path in deploy.glob("*.yaml") if path.name != "kustomization.yaml")


@pytest.mark.parametrize("daemon", ROLES)
def test_the_permissions_are_those_that_rbac_prints(deploy, capsys, daemon):
    assert main(["rbac", "--role", ROLES[daemon]]) == 0
    assert (deploy / f"{daemon}-rbac.yaml").read_text() == capsys.readouterr().out, (
        f"volumehost rbac --role {ROLES[daemon]} > deploy/{daemon}-rbac.yaml"
    )


def test_a_workload_has_its_kinds_fields(workload):
    assert workload["apiVersion"] == "apps/v1"
    assert set(workload) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(workload["spec"]) <= SPEC_FIELDS[workload["kind"]]
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_its_pods_are_valid_and_have_no_field_that_nobody_knows(workload, template):
    metadata = {**template["metadata"], "name": "pod", "namespace": workload["metadata"]["namespace"]}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    assert decode_wire(Pod, document).unknown == []
    validate_create(set_defaults(to_object(Pod, document)), kind_for("v1", "Pod"))


def test_it_runs_with_the_account_that_has_the_permissions(workload, template, deploy):
    daemon = workload["metadata"]["name"].removeprefix("volumehost-")
    account = next(yaml.safe_load_all((deploy / f"{daemon}-rbac.yaml").read_text()))["metadata"]
    assert template["spec"]["serviceAccountName"] == account["name"]
    assert workload["metadata"]["namespace"] == account["namespace"]
    namespace = yaml.safe_load((deploy / "namespace.yaml").read_text())
    assert namespace["metadata"]["name"] == account["namespace"]


def test_the_command_line_is_one(container):
    """Every option is there, and every variable that it names is set."""
    variables = {each["name"] for each in container["env"]}
    used = {name for argument in container["args"] for name in re.findall(r"\$\((\w+)\)", argument)}
    assert used == variables
    values = {"POD_IP": "10.0.0.1", "NODE_NAME": "node-1"}
    arguments = [re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], argument) for argument in container["args"]]
    command = program.get_command(click.Context(program), arguments[0])
    assert command is not None
    with command.make_context(arguments[0], arguments[1:]) as ctx:
        assert ctx.obj.cluster


def test_probes_ask_the_daemons_health(container):
    """Not alive is something else than not ready: an agent without its API server is not to be started anew."""
    (port,) = container["ports"]
    assert f"--http=$(POD_IP):{port['containerPort']}" in container["args"]
    paths = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert paths.pop("readinessProbe") == "/readyz"
    assert set(paths.values()) == {"/healthz"}
    assert all(container[name]["httpGet"]["port"] == port["name"] for name in container if name.endswith("Probe"))


def test_the_agents_mounts_are_the_hosts_and_outlive_its_pod(deploy):
    pod = yaml.safe_load((deploy / "agent.yaml").read_text())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "root-dir"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "root-dir"]
    assert mount["mountPropagation"] == "Bidirectional"
    assert container["securityContext"]["privileged"] is True, "Bidirectional needs it"
    assert mount["mountPath"] == volume["hostPath"]["path"], "containers are given the agent's paths"
    assert f"--root-dir={mount['mountPath']}" in container["args"]
    assert not any(argument.startswith("--drain") for argument in container["args"])
    assert pod["terminationGracePeriodSeconds"] > 30, "--grace is 30 s"


def test_the_agent_runs_on_labelled_nodes_only(deploy):
    """Beside a kubelet that mounts it would mount everything a second time."""
    pod = yaml.safe_load((deploy / "agent.yaml").read_text())["spec"]["template"]["spec"]
    assert "volumehost.io/agent" in pod["nodeSelector"]


def test_the_controllers_are_two_without_privileges(deploy):
    spec = yaml.safe_load((deploy / "controller.yaml").read_text())["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 2
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert spec["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
