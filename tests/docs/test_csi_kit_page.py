"""Everything that the CSI kit offers stands on its page, and the pages about drivers name what there is."""

from __future__ import annotations

import re

import pytest

from volumehost_csi_kit import fake, server

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("module", [server, fake], ids=lambda module: module.__name__)
def test_every_public_name_is_on_the_page(page, module):
    text = page("reference/csi-kit").text
    assert module.__all__
    assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_every_parameter_of_a_storage_class_that_is_read_is_on_the_page(read_source):
    from volumehost.control.provisioning import class_parameters

    told = read_source("csi.md")
    known = {name.removesuffix("-namespace") for name in class_parameters._KNOWN}
    assert len(known) >= 8
    assert [name for name in sorted(known) if f"`{name}`" not in told and f"`{name}-name`" not in told] == []


def test_every_code_that_leaves_a_call_uncertain_is_on_the_page(read_source):
    from volumehost_csi.failures import UNCERTAIN_CODES

    (row,) = re.findall(r"^\| \*uncertain\* \|(.*)\|$", read_source("csi.md"), re.MULTILINE)
    assert set(re.findall(r"`([A-Z_]+)`", row)) == UNCERTAIN_CODES


def test_every_variable_that_a_driver_is_given_is_on_the_page(read_source, repository):
    source = (repository / "plugins/csi/src/volumehost_csi/drivers/launch.py").read_text()
    given = set(re.findall(r'"(CSI_ENDPOINT|KUBE_\w+|VOLUMEHOST_DRIVER_(?!INSTANCE)\w+)":', source))
    assert len(given) == 4
    assert [name for name in sorted(given) if f"| `{name}` |" not in read_source("write-a-driver.md")] == []
