"""How a plugin's function stands in for a hook."""

from __future__ import annotations

import functools

import pytest

from volumehost.loader.binding import bind, describe_implementation

ARGUMENTS = ("spec", "pod")


def bound(function):
    implementation, faults = describe_implementation("new_mounter", function, ARGUMENTS)
    assert faults == []
    return implementation, bind(implementation, ARGUMENTS)


def test_a_function_with_the_same_arguments_is_used_as_it_is():
    def function(spec, pod):
        return spec, pod

    implementation, call = bound(function)
    assert implementation.direct
    assert call is function


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: "none", "none"),
        (lambda spec: spec, "s"),
        (lambda pod: pod, "p"),
        (lambda pod, spec: (pod, spec), ("p", "s")),
        (lambda spec, pod, extra=1: (spec, pod, extra), ("s", "p", 1)),
        (lambda spec, /, pod: (spec, pod), ("s", "p")),
        (lambda spec, pod=None: (spec, pod), ("s", "p")),
        (lambda *, mine=3: mine, 3),
    ],
)
def test_fewer_reordered_and_defaulted_arguments_work_by_position_and_by_keyword(function, expected):
    _, call = bound(function)
    assert call("s", "p") == expected
    assert call("s", pod="p") == expected
    assert call(pod="p", spec="s") == expected


def test_a_wrong_call_is_a_type_error_as_with_any_method():
    _, call = bound(lambda pod: pod)
    for args, kwargs in [(("s",), {}), (("s", "p", "x"), {}), (("s", "p"), {"spec": 1}), ((), {"spec": 1, "odd": 2})]:
        with pytest.raises(TypeError, match="new_mounter"):
            call(*args, **kwargs)


def test_decorated_functions_keep_their_signature():
    def decorate(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return ("decorated", function(*args, **kwargs))

        return inner

    class Plugin:
        @decorate
        def new_mounter(self, spec, pod):
            return spec, pod

    implementation, call = bound(Plugin().new_mounter)
    assert implementation.arguments == ARGUMENTS
    assert call(spec="s", pod="p") == ("decorated", ("s", "p"))


async def coroutine(spec, pod):
    """Asynchronous."""


def generator(spec, pod):
    yield spec


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda spec, pd: None, "'pd'"),
        (lambda *args: None, r"\*args"),
        (lambda **kwargs: None, r"\*\*kwargs"),
        (lambda *, spec: None, "by keyword only"),
        (coroutine, "asynchronous"),
        (generator, "generator"),
    ],
)
def test_br17_a_signature_that_cannot_work_is_told(function, words):
    import re

    _, faults = describe_implementation("new_mounter", function, ARGUMENTS)
    assert len(faults) == 1
    assert re.search(words, faults[0])
    assert "new_mounter" in faults[0]
