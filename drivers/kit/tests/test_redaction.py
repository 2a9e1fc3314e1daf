"""No secret in a shown message or in a text (CSI-WIRE-10, BR-74)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_csi_kit import csi
from volumehost_csi_kit.redaction import STRIPPED, TOKEN_KEY, is_sensitive, redacted, secret_values, strip

MARK = "MARKER-d41d8cd9"
SECRET_FIELDS = []
for line in (Path(__file__).parent / "bindings" / "wire_facts.txt").read_text().splitlines():
    if not line.startswith(" "):
        message = line.split()[0].rstrip(":")
    elif "secret" in line.split()[3:]:
        SECRET_FIELDS.append((message, line.split()[1]))


def test_the_table_knows_all_of_them():
    assert len(SECRET_FIELDS) == 19


@pytest.mark.parametrize(("message", "field"), SECRET_FIELDS)
def test_marked_fields_are_stripped(message, field):
    request = getattr(csi, message)()
    getattr(request, field)["innocent"] = MARK
    shown = redacted(request)
    assert MARK not in shown
    assert shown == f"{{{field}={STRIPPED}}}"
    assert secret_values(request) == [MARK]


def test_the_rest_is_shown():
    request = csi.NodePublishVolumeRequest(
        volume_id='a"b',
        readonly=True,
        volume_capability=csi.VolumeCapability(
            mount=csi.VolumeCapability.MountVolume(fs_type="ext4", mount_flags=["noatime"]),
            access_mode=csi.VolumeCapability.AccessMode(mode=csi.VolumeCapability.AccessMode.SINGLE_NODE_WRITER),
        ),
        volume_context={"b": "2", "a": "1"},
    )
    assert redacted(request) == (
        '{volume_id="a\\"b" volume_capability={mount={fs_type="ext4" mount_flags=["noatime"]} '
        'access_mode={mode=SINGLE_NODE_WRITER}} readonly=True volume_context={"a": "1", "b": "2"}}'
    )


def test_an_enum_value_of_a_later_version_is_shown_as_its_number():
    assert redacted(csi.VolumeCapability.AccessMode(mode=99)) == "{mode=99}"


def test_one_line_whatever_the_values():
    assert "\n" not in redacted(csi.NodeUnstageVolumeRequest(volume_id="a\nb"))


@pytest.mark.parametrize(
    "key",
    [
        TOKEN_KEY,
        "password",
        "adminPassword",
        "db_passwd",
        "secret",
        "clientSecret",
        "X-Token",
        "accessToken",
        "api_key",
        "secretKey",
        "private-key",
        "access.key",
        "passphrase",
        "credentials",
        "accountkey",
        "userSecrets",
    ],
)
def test_keys_that_tell_a_secret(key):
    assert is_sensitive(key)
    shown = redacted(csi.NodePublishVolumeRequest(volume_context={key: MARK}))
    assert MARK not in shown
    assert key in shown


@pytest.mark.parametrize(
    "key",
    [
        "storage.kubernetes.io/csiProvisionerIdentity",
        "csi.storage.k8s.io/pod.name",
        "csi.storage.k8s.io/fstype",
        "path",
        "csi.storage.k8s.io/node-stage-secret-name",
        "csi.storage.k8s.io/provisioner-secret-namespace",
        "secretName",
        "bypass",
        "compassion",
        "keyspace",
        "monkey",
    ],
)
def test_keys_that_do_not(key):
    assert not is_sensitive(key)


@pytest.mark.parametrize(
    "flag",
    [
        f"password={MARK}",
        f"username=u,password={MARK},vers=3.0",
        f"PASSWD={MARK}",
        f"pass={MARK}",
        f'secret="{MARK}"',
        f"sas_token={MARK}",
        f"aws.secret-key = {MARK}",
    ],
)
def test_mount_flags(flag):
    request = csi.NodeStageVolumeRequest(
        volume_capability=csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume(mount_flags=[flag, "ro"]))
    )
    assert MARK not in redacted(request)
    assert '"ro"' in redacted(request)
    assert secret_values(request) == [MARK]
    assert MARK not in strip(f"mount -o {flag} failed")


def test_user_information_in_an_address():
    request = csi.CreateVolumeRequest(parameters={"server": f"https://admin:{MARK}@storage.example.com/a"})
    assert redacted(request) == f'{{parameters={{"server": "https://{STRIPPED}@storage.example.com/a"}}}}'


@pytest.mark.parametrize(
    "shown",
    [
        str,
        lambda v: json.dumps(v)[1:-1],
        repr,
        lambda v: quote(v, safe=""),
        lambda v: base64.b64encode(v.encode()).decode(),
    ],
)
def test_texts_that_repeat_a_value(shown):
    value = 'p4"ss/wörd & more'
    assert strip(f"login with {shown(value)} refused", [value]).count(STRIPPED) == 1
    assert value not in strip(f"login with {shown(value)} refused", [value])


def test_tokens_inside_of_json_and_lines_of_a_key():
    tokens = json.dumps({"audience": {"token": MARK, "expirationTimestamp": "2030-01-01T00:00:00Z"}})
    request = csi.NodePublishVolumeRequest(volume_context={TOKEN_KEY: tokens}, secrets={"key": f"BEGIN\n{MARK}x\nEND"})
    assert strip(f"bad token {MARK}, bad line {MARK}x", secret_values(request)) == (
        f"bad token {STRIPPED}, bad line {STRIPPED}"
    )


def test_a_short_value_is_cut_out_where_it_stands_alone():
    assert strip("a bad password: 'a'", ["a"]) == f"{STRIPPED} bad password: '{STRIPPED}'"


def test_a_value_that_contains_another_is_cut_out_whole():
    assert strip("it was hunter2-admin", ["hunter2", "hunter2-admin"]) == f"it was {STRIPPED}"


def test_empty_values_change_nothing():
    assert strip("no such volume", ["", " ", "\n"]) == "no such volume"


@given(value=st.text(min_size=4), before=st.text(), after=st.text())
def test_no_value_survives(value, before, after):
    if value.strip() and value not in STRIPPED:
        assert value not in strip(before + value + after, [value]).replace(STRIPPED, "\0")
