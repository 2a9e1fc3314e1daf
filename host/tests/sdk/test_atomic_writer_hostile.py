"""A workload that writes to the volume gains nothing from the writer: BR-72."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from volumehost.errors import PayloadError, StillMountedError
from volumehost.mount.mounter import LinuxMounter
from volumehost.sdk import AtomicWriter, FileProjection


@pytest.fixture
def target(directory) -> str:
    path = f"{directory}/volume"
    os.mkdir(path)
    return path


@pytest.fixture
def precious(directory):
    """A host directory that must survive as it is."""
    path = f"{directory}/host"
    os.makedirs(f"{path}/sub")
    Path(path, "a").write_text("host file")
    Path(path, "sub", "b").write_text("host file")
    yield path
    assert sorted(os.listdir(path)) == ["a", "sub"]
    assert Path(path, "a").read_text() == Path(path, "sub", "b").read_text() == "host file"
    assert os.stat(f"{path}/a").st_mode & 0o777 == 0o644


def write(target: str, **files: str) -> bool:
    payload = {name.replace("__", "/"): FileProjection(data.encode(), 0o600) for name, data in files.items()}
    return AtomicWriter(target).write(payload)


def replace_link(target: str, name: str, leads_to: str) -> None:
    os.unlink(f"{target}/{name}")
    os.symlink(leads_to, f"{target}/{name}")


@pytest.mark.parametrize("form", ["{precious}", "../host", "..data_x", "..2020_01_01_00_00_00.1/../../host", "."])
@pytest.mark.parametrize("after", [{"a": "2"}, {"a": "1"}, {}, {"sub__b": "3"}])
def test_br72_the_data_link_led_elsewhere(target, precious, form, after):
    write(target, a="1", sub__b="1")
    replace_link(target, "..data", form.format(precious=precious))
    assert write(target, **after)
    assert not os.readlink(f"{target}/..data").startswith("/")
    for name, data in after.items():
        assert Path(target, name.replace("__", "/")).read_text() == data
    assert len([name for name in os.listdir(target) if name.startswith("..20")]) == 1


@pytest.fixture
def twin(directory) -> str:
    """A host directory with just the content that is to be written."""
    path = f"{directory}/twin"
    os.mkdir(path)
    Path(path, "a").write_text("1")
    os.chmod(f"{path}/a", 0o600)
    return path


@pytest.mark.parametrize("form", ["{twin}", "../twin", "twin-link"])
def test_br72_a_directory_of_others_with_the_right_content_is_not_ours(target, twin, form):
    write(target, a="1")
    os.symlink(twin, f"{target}/twin-link")
    replace_link(target, "..data", form.format(twin=twin))
    assert write(target, a="1")
    assert os.stat(f"{target}/..data").st_ino != os.stat(twin).st_ino
    assert Path(twin, "a").read_text() == "1"


def test_br72_a_file_of_others_with_the_right_content_is_not_ours(target, twin):
    write(target, a="1")
    path = f"{target}/{os.readlink(f'{target}/..data')}/a"
    os.unlink(path)
    os.symlink(f"{twin}/a", path)
    assert write(target, a="1")
    assert os.stat(f"{target}/a").st_ino != os.stat(f"{twin}/a").st_ino


def test_br72_a_generation_that_is_a_link(target, precious):
    write(target, a="1", sub__b="1")
    generation = os.readlink(f"{target}/..data")
    os.rename(f"{target}/{generation}", f"{target}/moved")
    os.symlink(precious, f"{target}/{generation}")
    assert write(target, a="2")
    assert Path(target, "a").read_text() == "2"
    assert not os.path.lexists(f"{target}/{generation}")


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_br72_the_data_link_became_something_else(target, precious, kind):
    write(target, a="1")
    os.unlink(f"{target}/..data")
    if kind == "file":
        Path(target, "..data").touch()
    else:
        os.mkdir(f"{target}/..data")
        os.symlink(precious, f"{target}/..data/link")
    assert write(target, a="2")
    assert Path(target, "a").read_text() == "2"


@pytest.mark.parametrize("name", ["..data_tmp", "..name_tmp"])
@pytest.mark.parametrize("kind", ["link", "directory", "file"])
def test_br72_the_temporary_names_are_taken(target, precious, name, kind):
    write(target, a="1")
    if kind == "link":
        os.symlink(precious, f"{target}/{name}")
    elif kind == "file":
        Path(target, name).touch()
    else:
        os.mkdir(f"{target}/{name}")
        os.symlink(precious, f"{target}/{name}/link")
    assert write(target, a="2", b="3")
    assert Path(target, "b").read_text() == "3"
    assert not os.path.lexists(f"{target}/{name}")


@pytest.mark.parametrize("inside", ["a", "sub"])
def test_br72_links_inside_of_a_generation(target, precious, inside):
    write(target, a="1", sub__b="1")
    generation = f"{target}/{os.readlink(f'{target}/..data')}"
    os.rename(f"{generation}/{inside}", f"{target}/moved")
    os.symlink(f"{precious}/{inside}", f"{generation}/{inside}")
    assert write(target, a="1", sub__b="1")
    assert Path(target, "a").read_text() == Path(target, "sub", "b").read_text() == "1"


@pytest.mark.parametrize("leads_to", ["{precious}/a", "..data/other", "/etc/passwd"])
def test_br72_a_visible_name_leads_elsewhere(target, precious, leads_to):
    write(target, a="1")
    replace_link(target, "a", leads_to.format(precious=precious))
    assert not write(target, a="1")
    assert os.readlink(f"{target}/a") == "..data/a"
    assert Path(target, "a").read_text() == "1"


def test_a_visible_name_that_became_a_file_is_put_right(target):
    write(target, a="1")
    os.unlink(f"{target}/a")
    Path(target, "a").write_text("forged")
    write(target, a="1")
    assert Path(target, "a").read_text() == "1"


def test_a_visible_name_that_is_a_mount_point_for_another_volume_stays(target, caplog):
    """UTIL-22 makes such directories."""
    os.mkdir(f"{target}/nested")
    write(target, a="1", nested__b="2")
    assert os.path.isdir(f"{target}/nested")
    assert "is a directory" in caplog.text
    write(target, a="1")
    assert os.path.isdir(f"{target}/nested")


def test_links_and_files_of_others_stay(target, precious):
    write(target, a="1")
    os.symlink(precious, f"{target}/foreign")
    os.symlink("..data/a", f"{target}/alias")
    Path(target, "own").touch()
    write(target, b="2")
    assert set(os.listdir(target)) >= {"foreign", "alias", "own", "b"}
    assert "a" not in os.listdir(target)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).write_bytes(b"")], ids=["fifo", "grown"])
def test_files_that_would_block_or_never_end_count_as_different(target, make):
    write(target, a="1")
    path = f"{target}/{os.readlink(f'{target}/..data')}/a"
    os.unlink(path)
    make(path)
    assert write(target, a="1")
    assert Path(target, "a").read_text() == "1"


@pytest.mark.root
def test_something_mounted_in_the_old_generation_is_not_emptied(target, precious):
    write(target, a="1", sub__b="1")
    mounted = f"{target}/{os.readlink(f'{target}/..data')}/sub"
    LinuxMounter().mount(precious, mounted, options=["bind"])
    try:
        with pytest.raises(PayloadError, match="are written; removing what was there before") as caught:
            write(target, a="2")
        assert isinstance(caught.value.__cause__, StillMountedError)
        assert mounted in str(caught.value)
        assert Path(target, "a").read_text() == "2"
    finally:
        LinuxMounter().unmount(mounted)
    assert not write(target, a="2")
    assert len([name for name in os.listdir(target) if name.startswith("..20")]) == 1


def test_br72_links_swapped_while_it_writes(target, precious):
    write(target, a="0", sub__b="0")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            with suppress(OSError):
                generation = os.readlink(f"{target}/..data")
                os.symlink(precious, f"{target}/evil")
                os.rename(f"{target}/evil", f"{target}/..data")
                os.rename(f"{target}/{generation}/sub", f"{target}/{generation}/aside")
                os.symlink(f"{precious}/sub", f"{target}/{generation}/sub")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for version in range(300):
            with suppress(PayloadError):
                write(target, a=str(version), sub__b=str(version))
    finally:
        stop.set()
        thread.join()
    write(target, a="end", sub__b="end")
    assert Path(target, "a").read_text() == Path(target, "sub", "b").read_text() == "end"
