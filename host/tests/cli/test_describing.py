from __future__ import annotations

from volumehost.api.objects import (
    ConfigMap,
    Container,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    Secret,
    Volume,
    VolumeMount,
)
from volumehost.cli.describing import describe_object


def test_metadata_comes_first_then_every_field_that_is_set() -> None:
    pod = Pod(
        metadata=ObjectMeta(
            name="web",
            namespace="default",
            uid="u-1",
            labels={"b": "2", "a": "1"},
            finalizers=["example.com/keep"],
            owner_references=[OwnerReference(kind="Job", name="batch")],
        ),
        spec=PodSpec(
            volumes=[
                Volume(name="scratch", empty_dir=EmptyDirVolumeSource()),
                Volume(name="site", host_path=HostPathVolumeSource(path="/srv/a b", type="Directory")),
            ],
            containers=[
                Container(
                    name="c", args=["x", "y"], volume_mounts=[VolumeMount(name="site", mount_path="/d", read_only=True)]
                )
            ],
        ),
    )
    assert describe_object(pod) == (
        "Name:        web\n"
        "Namespace:   default\n"
        "Kind:        Pod (v1)\n"
        "UID:         u-1\n"
        "Labels:      a=1, b=2\n"
        "Finalizers:  example.com/keep\n"
        "Owners:      Job/batch\n"
        "Spec:\n"
        "  volumes:\n"
        "    - name: scratch\n"
        "      emptyDir: {}\n"
        "    - name: site\n"
        "      hostPath:\n"
        "        path: /srv/a b\n"
        "        type: Directory\n"
        "  containers:\n"
        "    - name: c\n"
        "      args:\n"
        "        - x\n"
        "        - y\n"
        "      volumeMounts:\n"
        "        - name: site\n"
        "          readOnly: true\n"
        "          mountPath: /d\n"
    )


def test_br74_content_of_secrets_shows_as_sizes_also_in_the_copy_that_kubectl_keeps() -> None:
    secret = Secret(
        metadata=ObjectMeta(
            name="s",
            annotations={
                "kubectl.kubernetes.io/last-applied-configuration": '{"data": "aHVudGVyMg=="}',
                "note": "kept",
            },
        ),
        data={"password": b"hunter2", "one": b"x"},
        string_data={"pin": "1234"},
    )
    text = describe_object(secret)
    assert "  password: 7 bytes\n" in text
    assert "  one: 1 byte\n" in text
    assert "  pin: 4 bytes\n" in text
    assert "note=kept" in text
    for private in ("hunter2", "aHVudGVyMg", "1234"):
        assert private not in text


def test_text_of_several_lines_is_indented_and_cannot_steer_the_terminal() -> None:
    text = describe_object(ConfigMap(metadata=ObjectMeta(name="c"), data={"f": "one\ntwo\x1b[2J\n"}))
    assert "Data:\n  f:\n    one\n    two\\x1b[2J\n" in text
