"""The administrator's configuration of plugins (SPEC-09)."""

import pytest

from volumehost.errors import ManifestError
from volumehost.hosts.config import CONFIG_VARIABLE, HostConfig

NAME = "kubernetes.io/host-path"


def _config(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    return HostConfig.for_root_dir(str(tmp_path), {})


def test_without_a_file_the_defaults_stand(tmp_path):
    config = HostConfig.for_root_dir(str(tmp_path), {}).volume_config(NAME)
    assert not config.provisioning_enabled
    assert (config.recycler_minimum_timeout, config.recycler_timeout_increment) == (60, 30)
    assert config.recycler_pod_template is None


def test_a_plugin_gets_what_the_file_says_of_it(tmp_path):
    config = _config(
        tmp_path,
        f'[plugins."{NAME}"]\nprovisioning_enabled = true\nrecycler_minimum_timeout = 5\n'
        'recycler_timeout_increment = 7\nattributes = { base = "/srv", depth = 3 }\n',
    )
    found = config.volume_config(NAME)
    assert found.provisioning_enabled
    assert (found.recycler_minimum_timeout, found.recycler_timeout_increment) == (5, 7)
    assert found.other_attributes == {"base": "/srv", "depth": "3"}
    assert not config.volume_config("example.com/other").provisioning_enabled


def test_the_environment_names_another_file(tmp_path):
    (tmp_path / "other.toml").write_text(f'[plugins."{NAME}"]\nprovisioning_enabled = true\n')
    environment = {CONFIG_VARIABLE: str(tmp_path / "other.toml")}
    assert HostConfig.for_root_dir("/nowhere", environment).volume_config(NAME).provisioning_enabled


def test_a_file_that_the_environment_names_must_be_there(tmp_path):
    config = HostConfig.for_root_dir("/nowhere", {CONFIG_VARIABLE: str(tmp_path / "absent.toml")})
    with pytest.raises(ManifestError, match="no such file") as caught:
        config.volume_config(NAME)
    assert caught.value.source == str(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not toml at all", "reading the configuration"),
        ("plugins = 3\n", "plugins"),
        ("[plugins]\na = 3\n", "plugins"),
        (f'[plugins."{NAME}"]\nprovisoning_enabled = true\n', "provisoning_enabled: unknown"),
        (f'[plugins."{NAME}"]\nprovisioning_enabled = "yes"\n', "must be a bool"),
        (f'[plugins."{NAME}"]\nrecycler_minimum_timeout = -1\n', "number of seconds"),
        (f'[plugins."{NAME}"]\nrecycler_minimum_timeout = true\n', "number of seconds"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_names_the_file_and_the_key(tmp_path, text, expected):
    with pytest.raises(ManifestError, match=r"config\.toml") as caught:
        _config(tmp_path, text).volume_config(NAME)
    assert expected in str(caught.value)


def test_util26_the_recycler_template_is_read_from_its_file(tmp_path):
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: scrub}\nspec:\n  containers: [{name: c, image: i}]\n"
        "  volumes: [{name: vol, emptyDir: {}}]\n"
    )
    config = _config(tmp_path, f'[plugins."{NAME}"]\nrecycler_pod_template = "{tmp_path}/pod.yaml"\n')
    assert config.volume_config(NAME).recycler_pod_template.spec.volumes[0].name == "vol"
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    with pytest.raises(ManifestError, match="exactly one Pod"):
        config.volume_config(NAME)
