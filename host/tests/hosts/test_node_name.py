"""The node's name stays with the root directory, also when the machine is renamed."""

import os

import pytest

from volumehost.errors import RootDirectoryError
from volumehost.hosts.node_host import NodeHost
from volumehost.hosts.node_info import local_node_name
from volumehost.hosts.node_name import keep_node_name, node_name_of


@pytest.fixture
def root(tmp_path):
    return str(tmp_path)


def never():
    raise AssertionError("asked for volumes")


def test_it_is_that_of_the_machine_until_there_is_another(root):
    assert node_name_of(root) == local_node_name()
    keep_node_name(root, "node-1", never)
    assert node_name_of(root) == "node-1"
    keep_node_name(root, "node-1", never)


def test_another_one_is_taken_when_there_are_no_volumes(root):
    keep_node_name(root, "node-1", never)
    with pytest.raises(RootDirectoryError, match="go on with --node-name node-1"):
        keep_node_name(root, "node-2", lambda: True)
    assert node_name_of(root) == "node-1"
    keep_node_name(root, "node-2", lambda: False)
    assert node_name_of(root) == "node-2"


@pytest.mark.parametrize("content", [b"nod", b"", b"\n", b"two words\n", b"../x\n", b"\xff\xfe", b"a" * 300])
def test_a_damaged_record_is_none(root, content, caplog):
    with open(f"{root}/node-name", "wb") as file:
        file.write(content)
    assert node_name_of(root) == local_node_name()
    assert "damaged" in caplog.text
    keep_node_name(root, "node-1", never)
    assert node_name_of(root) == "node-1"


def test_a_record_that_cannot_be_read_or_written_is_told(root, caplog):
    os.makedirs(f"{root}/node-name/held")  # an empty one would be replaced
    assert node_name_of(root) == local_node_name()
    keep_node_name(root, "node-1", never)
    assert "is not recorded" in caplog.text


def test_a_host_is_named_by_it(root):
    keep_node_name(root, "node-1", never)
    assert NodeHost(root).get_node_name() == "node-1"
    assert NodeHost(root, node_name="node-2").get_node_name() == "node-2"


@pytest.mark.parametrize("name", ["", "../x", "two words", "-a", "a" * 254])
def test_a_name_that_no_node_can_have_is_refused(root, name):
    """It would be recorded, and could not be read again: the root directory would have lost its node's name."""
    with pytest.raises(RootDirectoryError, match="give it another name with --node-name"):
        keep_node_name(root, name, never)
    assert os.listdir(root) == []
