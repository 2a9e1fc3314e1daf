"""Modes and owners of the files: PAYLOAD-03, FSGRP-03, ATOMIC-10, ATOMIC-11."""

from __future__ import annotations

import os
import stat

import pytest

from volumehost import MounterArgs
from volumehost.errors import OwnershipError, UncertainProgressError

pytestmark = pytest.mark.root

GROUP = MounterArgs(fs_group=5000)


def secret(**source):
    return {"name": "login", "secret": {"secretName": "db", **source}}


@pytest.fixture(autouse=True)
def umask():
    """Modes are exact whatever it is."""
    former = os.umask(0o077)
    yield
    os.umask(former)


def test_payload03_the_group_gets_all_and_may_read_what_its_owner_may(world):
    world.secret("db", {"key": b"1"})
    path = world.mount(secret(items=[{"key": "key", "path": "deep/key"}], defaultMode=0o400), args=GROUP)
    generation = os.path.realpath(f"{path}/..data")
    for directory in (path, generation, f"{generation}/deep"):
        status = os.stat(directory)
        assert (status.st_gid, bool(status.st_mode & stat.S_ISGID)) == (5000, True)
    status = os.stat(f"{path}/deep/key")
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, 5000, 0o440)


def test_a_volume_with_a_group_is_not_written_anew_for_it(world):
    world.secret("db", {"key": b"1"})
    path = world.mount(secret(defaultMode=0o400), args=GROUP)
    before = os.readlink(f"{path}/..data")
    world.mount(secret(defaultMode=0o400), args=MounterArgs(fs_group=5000, is_remount=True))
    assert os.readlink(f"{path}/..data") == before


def test_what_a_refresh_writes_is_the_groups_too(world):
    world.secret("db", {"key": b"1"})
    path = world.mount(secret(), args=GROUP)
    world.secret("db", {"key": b"2", "more": b"3"})
    world.mount(secret(), args=MounterArgs(fs_group=5000, is_remount=True))
    assert {os.stat(f"{path}/{name}").st_gid for name in ("key", "more")} == {5000}


def test_atomic10_a_change_of_a_mode_alone_is_a_change(world):
    world.secret("db", {"key": b"1"})
    path = world.mount(secret(defaultMode=0o400))
    assert world.mode(f"{path}/key") == 0o400
    world.mount(secret(defaultMode=0o444), args=MounterArgs(is_remount=True))
    assert world.mode(f"{path}/key") == 0o444


def test_everybody_finds_the_files_whatever_the_umask(world):
    world.secret("db", {"key": b"1"})
    world.config_map("app", {"key": "1"})
    for volume in (secret(), {"name": "settings", "configMap": {"name": "app"}}):
        path = world.mount(volume)
        assert world.mode(path) & 0o777 == 0o777
        assert world.mode(f"{path}/..data") == 0o755


def test_the_hosts_applicator_is_used_without_a_policy(world):
    """FSGRP-12."""
    calls = []

    def applicator(mounter, directory, args):
        calls.append((mounter.get_attributes().read_only, directory, args.fs_group, args.fs_group_change_policy))

    world.secret("db", {"key": b"1"})
    args = MounterArgs(fs_group=5000, fs_group_change_policy="OnRootMismatch", volume_ownership_applicator=applicator)
    path = world.mount(secret(), args=args)
    assert calls == [(True, path, 5000, None)]


def test_atomic12_when_the_group_cannot_be_given_nothing_is_left(world):
    def applicator(*_args):
        raise OwnershipError("Input/output error", action="reading a directory")

    world.secret("db", {"key": b"1"})
    with pytest.raises(OwnershipError, match="Input/output error"):
        world.mount(secret(), args=MounterArgs(fs_group=5000, volume_ownership_applicator=applicator))
    assert world.left() == []


def test_when_even_that_fails_the_volume_is_uncertain(world):
    """So that the host tears it down later."""

    def applicator(_mounter, directory, _args):
        os.makedirs(f"{directory}/busy")
        world.host.get_mounter().mount("tmpfs", f"{directory}/busy", "tmpfs", [])
        raise OwnershipError("Input/output error", action="reading a directory")

    world.config_map("app", {"key": "1"})
    volume = {"name": "settings", "configMap": {"name": "app"}}
    with pytest.raises(UncertainProgressError, match="Input/output error"):
        world.mount(volume, args=MounterArgs(fs_group=5000, volume_ownership_applicator=applicator))
    path = world.mounter(world.pod(volume)).get_path()
    world.host.get_mounter().unmount(f"{path}/busy")
    world.unmount(path)
    assert world.left() == []
