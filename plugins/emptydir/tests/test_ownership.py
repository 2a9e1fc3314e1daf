"""The pod's group on an emptyDir: only after success, with its errors (EMPTYDIR-23, improved)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from volumehost import MounterArgs
from volumehost.errors import OwnershipError, UncertainProgressError, is_uncertain_progress_error

pytestmark = pytest.mark.root


def test_the_group_gets_the_volume_and_what_is_created_in_it(plugin, make_spec, pod, data_dir):
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs(fs_group=5000))
    status = os.stat(data_dir)
    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (5000, 0o2777)
    Path(data_dir, "file").touch()
    assert os.stat(f"{data_dir}/file").st_gid == 5000


def test_content_from_before_the_marker_is_given_away_too(plugin, make_spec, pod, data_dir):
    os.makedirs(f"{data_dir}/sub")
    Path(data_dir, "sub", "file").touch()
    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs(fs_group=5000))
    assert os.stat(f"{data_dir}/sub/file").st_gid == 5000


def test_a_failure_is_uncertain_because_the_volume_is_there(plugin, make_spec, pod, data_dir, meta_dir):
    calls = []

    def applicator(mounter, directory, args):
        calls.append((mounter.get_path(), directory, args.fs_group))
        if len(calls) == 1:
            raise OwnershipError("Input/output error", action=f"reading {directory}")

    mounter = plugin.new_mounter(make_spec("Memory", "1Mi"), pod)
    args = MounterArgs(fs_group=5000, volume_ownership_applicator=applicator)
    with pytest.raises(UncertainProgressError, match=r"was not given to group 5000: .*Input/output error") as caught:
        mounter.set_up(args)
    assert is_uncertain_progress_error(caught.value)
    assert not os.path.exists(f"{meta_dir}/ready")
    mounter.set_up(args)
    assert calls == [(data_dir, data_dir, 5000)] * 2
    assert os.path.exists(f"{meta_dir}/ready")
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()


def test_a_failed_set_up_does_not_touch_ownership(plugin, make_spec, pod, data_dir, directory):
    os.makedirs(os.path.dirname(data_dir))
    os.mkdir(f"{directory}/elsewhere", 0o700)
    os.symlink(f"{directory}/elsewhere", data_dir)
    with pytest.raises(Exception, match="not a directory"):
        plugin.new_mounter(make_spec(), pod).set_up(MounterArgs(fs_group=5000))
    assert os.stat(f"{directory}/elsewhere").st_gid == 0


def test_fsgrp12_the_applicator_is_told_of_no_policy(plugin, make_spec, pod):
    policies = []

    def applicator(mounter, directory, args):
        policies.append(args.fs_group_change_policy)

    args = MounterArgs(fs_group=5000, fs_group_change_policy="OnRootMismatch", volume_ownership_applicator=applicator)
    plugin.new_mounter(make_spec(), pod).set_up(args)
    assert policies == [None]


def test_without_a_group_the_applicator_is_not_asked(plugin, make_spec, pod):
    def applicator(*_args):
        raise AssertionError("asked")

    plugin.new_mounter(make_spec(), pod).set_up(MounterArgs(volume_ownership_applicator=applicator))
