"""Binds hooks to a plugin's own functions, so that a hook call costs little more than a method call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple

_UNUSUAL = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Implementation(NamedTuple):
    """A plugin's function for one hook.

    ``arguments``: the hook's arguments that it takes, in its own order. ``direct``: it can stand in for the hook as
    it is, called by position or by keyword.
    """

    hook: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    direct: bool


def describe_implementation(
    hook: str, function: Callable[..., Any], hook_arguments: Sequence[str]
) -> tuple[Implementation, list[str]]:
    """How a function implements a hook, and what is wrong with its signature.

    A function may take fewer arguments than the hook has, in any order, and others of its own that have a default.
    """
    names = _plain_arguments(function)
    if names is not None and all(name in hook_arguments for name in names):
        return Implementation(hook, function, names, direct=names == tuple(hook_arguments)), []
    faults: list[str] = []
    taken: list[str] = []
    direct = True
    for parameter in inspect.signature(function).parameters.values():
        optional = parameter.default is not inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            stars = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else "*"
            faults.append(f"{hook} takes {stars}{parameter.name}: name the arguments that it needs")
        elif parameter.kind not in _POSITIONAL:
            if not optional:
                faults.append(f"{hook} takes {parameter.name!r} by keyword only: hooks are called by position")
        elif parameter.name in hook_arguments:
            taken.append(parameter.name)
            direct = direct and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        elif not optional:
            known = ", ".join(hook_arguments) or "none"
            faults.append(f"{hook} takes an argument {parameter.name!r} that the hook does not have (it has: {known})")
        else:
            direct = False
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        faults.append(f"{hook} is asynchronous: hooks are plain functions")
    elif inspect.isgeneratorfunction(function):
        faults.append(f"{hook} is a generator: it must return its result")
    direct = direct and tuple(taken) == tuple(hook_arguments)
    return Implementation(hook, function, tuple(taken), direct), faults


def _plain_arguments(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The arguments of an ordinary function or method without defaults; None for anything out of the ordinary.

    ``inspect.signature`` takes all of them, at many times the cost.
    """
    bound = isinstance(function, MethodType)
    plain: object = getattr(function, "__func__", None) if bound else function
    if not isinstance(plain, FunctionType) or plain.__dict__.keys() & {"__wrapped__", "__signature__"}:
        return None
    code = plain.__code__
    if plain.__defaults__ or code.co_posonlyargcount or code.co_kwonlyargcount or code.co_flags & _UNUSUAL:
        return None
    return code.co_varnames[bound : code.co_argcount]


def bind(implementation: Implementation, hook_arguments: Sequence[str]) -> Callable[..., Any]:
    """A callable with the hook's signature: the plugin's own function where it has that signature already."""
    if implementation.direct:
        return implementation.function
    function, taken, names = implementation.function, implementation.arguments, tuple(hook_arguments)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = name_arguments(implementation.hook, names, args, kwargs)
        return function(*[values[name] for name in taken])

    return call


def name_arguments(hook: str, names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a hook call by name; wrong calls get the TypeError that a method would raise."""
    values = dict(zip(names, args, strict=False))
    doubled = values.keys() & kwargs.keys()
    values.update(kwargs)
    if len(args) > len(names) or doubled or values.keys() != set(names):
        given = f"{len(args)} by position and {sorted(kwargs)} by keyword"
        raise TypeError(f"{hook}() takes {list(names)}, got {given}")
    return values
