"""The hook reference and the code agree: each hook stands on the page with its exact signature, and nothing else does.

What must be there is read from the source with ``ast``, apart from the way in which the page was made.
"""

from __future__ import annotations

import ast
import inspect

import pytest

from volumehost import hookspecs

pytestmark = pytest.mark.slow


def written_signature(function: ast.FunctionDef) -> str:
    """``name(spec: Spec) -> bool`` as the source has it, without ``self``."""
    function.args.args = function.args.args[1:]
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{function.name}({ast.unparse(function.args)}){returns}"


def hooks_in_source() -> dict[str, dict[str, str]]:
    """Class name to hook name to signature, for every function that is marked as a hook."""
    tree = ast.parse(inspect.getsource(hookspecs))
    return {
        node.name: {
            item.name: written_signature(item)
            for item in node.body
            if isinstance(item, ast.FunctionDef) and any("hookspec" in ast.unparse(d) for d in item.decorator_list)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def expected_on_page() -> dict[str, str]:
    """Anchor to signature. A hook that two interfaces share stands under both."""
    source = hooks_in_source()
    expected = {}
    for interface in hookspecs.INTERFACES:
        holders = [interface, *(base for base in interface.__bases__ if base.__name__.startswith("_"))]
        for holder in holders:
            for name, signature in source.get(holder.__name__, {}).items():
                expected[f"volumehost.{interface.__name__}.{name}"] = signature
    return expected


def test_the_source_has_eleven_interfaces_with_hooks():
    assert len(hookspecs.INTERFACES) == 11
    source = hooks_in_source()
    for hook_class in hookspecs.HOOK_CLASSES:
        assert set(source[hook_class.__name__]) == set(hookspecs.own_hooks(hook_class))


def test_each_hook_is_on_the_page_with_its_exact_signature(page):
    expected = expected_on_page()
    assert len(expected) >= 30
    interfaces = {f"volumehost.{interface.__name__}" for interface in hookspecs.INTERFACES}
    on_page = {
        name: text
        for name, text in page("reference/hooks").signatures.items()
        if name.startswith("volumehost.") and name not in interfaces
    }
    assert on_page == expected


def test_each_interface_is_on_the_page_with_its_text(page):
    hooks = page("reference/hooks")
    for interface in hookspecs.INTERFACES:
        assert f"volumehost.{interface.__name__}" in hooks.signatures
        assert " ".join((inspect.getdoc(interface) or "").split()) in hooks.text


@pytest.mark.parametrize("name", sorted(hookspecs.OPTIONAL_HOOKS))
def test_optional_hooks_are_shown_with_their_default(page, name):
    text = page("reference/hooks").text
    after = text[text.index(f" {name}(") :]
    assert f"Optional; without it the answer is {hookspecs.OPTIONAL_HOOKS[name]!r}." in after[:250]


def test_a_page_that_lacks_a_hook_is_noticed(site, parse_page):
    """The comparison itself can fail."""
    html = (site / "reference/hooks.html").read_text()
    anchor = 'id="volumehost.VolumePlugin.can_support"'
    assert anchor in html
    whole, changed = parse_page(html), parse_page(html.replace(anchor, ""))
    assert set(whole.signatures) - set(changed.signatures) == {"volumehost.VolumePlugin.can_support"}
