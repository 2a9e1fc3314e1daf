"""Everything that plugins return or are given, and every error, stands in the reference with its exact signature."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pkgutil
import re
from importlib import import_module

import pytest

import volumehost
from volumehost import errors, host_services, spec, storage_driver, volume_host, volumes

pytestmark = pytest.mark.slow

PAGES = {
    "reference/returned-objects": [volumes],
    "reference/volume-host": [volume_host, host_services],
    "reference/spec": [spec],
    "reference/storage-driver": [storage_driver],
    "reference/errors": [errors],
}


def public_classes(module):
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def anchor(documented):
    exported = documented.__name__ in volumehost.__all__
    return f"{'volumehost' if exported else documented.__module__}.{documented.__name__}"


def methods_in_source(documented):
    """Method name to signature as the source has it, without self and cls; properties left out."""
    module = inspect.getmodule(documented)
    parts = [f"{module.__name__}.{part.name}" for part in pkgutil.iter_modules(getattr(module, "__path__", ()))]
    written = [ast.parse(inspect.getsource(import_module(part))) for part in parts or [module.__name__]]
    nodes = [node for tree in written for node in tree.body if isinstance(node, ast.ClassDef)]
    node = next(n for n in nodes if n.name == documented.__name__)
    found = {}
    for item in node.body:
        decorators = [ast.unparse(d) for d in getattr(item, "decorator_list", [])]
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_") and "property" not in decorators:
            item.args.args = item.args.args[1:]
            prefix = "classmethod " if "classmethod" in decorators else ""
            returns = ast.unparse(item.returns).replace('"', "'") if item.returns else ""
            found[item.name] = f"{prefix}{item.name}({ast.unparse(item.args)}) -> {returns}"
    return found


def without_spaces(text):
    """Sphinx and ast differ in spaces around defaults and in a trailing comma, never in meaning."""
    return re.sub(r",?\)", ")", re.sub(r"\s", "", text.replace('"', "'")))


@pytest.mark.parametrize(("name", "modules"), PAGES.items(), ids=PAGES)
def test_every_public_class_is_on_its_page_with_its_text(page, name, modules):
    shown = page(name)
    missing = [anchor(c) for module in modules for c in public_classes(module) if anchor(c) not in shown.signatures]
    assert missing == []


@pytest.mark.parametrize(("name", "modules"), PAGES.items(), ids=PAGES)
def test_every_method_has_its_exact_signature(page, name, modules):
    signatures = page(name).signatures
    expected = {
        f"{anchor(documented)}.{method}": without_spaces(signature)
        for module in modules
        for documented in public_classes(module)
        for method, signature in methods_in_source(documented).items()
    }
    shown = {key: without_spaces(signatures.get(key, "")) for key in expected}
    assert shown == expected


def test_every_protocol_that_plugins_return_is_among_them(page):
    """The Protocols of ``volumehost.volumes``, none forgotten in the list on the page."""
    protocols = [c for c in public_classes(volumes) if getattr(c, "_is_protocol", False)]
    assert len(protocols) == 18
    signatures = page("reference/returned-objects").signatures
    assert [anchor(p) for p in protocols if anchor(p) not in signatures] == []


def test_every_field_of_a_value_is_shown(page):
    signatures = page("reference/returned-objects").signatures
    values = [c for c in public_classes(volumes) if dataclasses.is_dataclass(c)]
    assert values
    for value in values:
        for field in dataclasses.fields(value):
            assert f"{field.name}:{field.type}".replace(" ", "") in without_spaces(
                signatures[f"{anchor(value)}.{field.name}"]
            )


def test_the_tree_of_errors_is_whole_on_the_page_and_in_the_module(page):
    """The drawn tree on the page has every error, below its base; the module's own has every name."""
    text = page("reference/errors").text
    drawn = text[text.index("VolumeHostError |--") : text.index("For an operation on a volume")].split()
    classes = [c for c in public_classes(errors) if issubclass(c, BaseException)]
    assert sorted(word for word in drawn if word.endswith("Error")) == sorted(c.__name__ for c in classes)
    for error in classes:
        for base in error.__mro__[1:]:
            if base in classes:
                assert drawn.index(base.__name__) < drawn.index(error.__name__)
    told = set(re.findall(r"\w+Error\b", errors.__doc__ or ""))
    assert [c.__name__ for c in classes if c.__name__ not in told] == []


def test_types_that_share_a_name_are_linked_apart(site):
    """A Spec's volume is the API object, not the Protocol of the same name."""
    html = (site / "reference/spec.html").read_text()
    assert 'href="api-objects.html#volumehost.api.objects.Volume"' in html
    assert 'href="returned-objects.html#volumehost.Volume"' not in html


def test_every_api_object_is_on_its_page_with_its_fields(page):
    from volumehost.api import objects

    shown = page("reference/api-objects")
    structs = [
        getattr(objects, name) for name in objects.__all__ if hasattr(getattr(objects, name), "__struct_fields__")
    ]
    assert len(structs) > 80
    for struct in structs:
        assert f"volumehost.api.objects.{struct.__name__}" in shown.signatures
        for name in struct.__annotations__:
            if name in struct.__struct_fields__:
                assert f" {name}:" in shown.text
