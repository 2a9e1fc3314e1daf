"""Quantities in objects: readable, and not negative or zero where that makes no sense."""

from __future__ import annotations

from collections.abc import Mapping

from volumehost.api.validation.names import qualified_name
from volumehost.api.validation.problems import Problems
from volumehost.errors import QuantityError
from volumehost.sdk.quantity import Quantity, parse_quantity


def quantity(text: str, field: str, problems: Problems) -> Quantity | None:
    """The quantity, or None when it is not one."""
    try:
        return parse_quantity(text)
    except QuantityError as error:
        problems.invalid(field, text, error.reason)
        return None


def not_negative(text: str, field: str, problems: Problems) -> None:
    """A quantity that may be zero."""
    amount = quantity(text, field, problems)
    if amount is not None and amount.nanos < 0:
        problems.invalid(field, text, "must be greater than or equal to 0")


def size(text: str, field: str, problems: Problems) -> None:
    """A size of storage: above zero and in whole bytes."""
    amount = quantity(text, field, problems)
    if amount is None:
        return
    if amount.nanos <= 0:
        problems.invalid(field, text, "must be greater than zero")
    elif not amount.is_whole():
        problems.invalid(field, text, "must be an integer")


def resource_list(resources: Mapping[str, str], field: str, problems: Problems) -> None:
    """Amounts of resources, none negative."""
    for name, text in resources.items():
        reason = qualified_name(name)
        if reason:
            problems.invalid(field, name, reason)
        not_negative(text, f"{field}[{name}]", problems)
