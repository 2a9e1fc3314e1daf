"""Sizes of storage as people type them: ``20Gi``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from volumehost.sdk.quantity import Quantity

    _ParamType = click.ParamType[Quantity]
else:  # generic for type checkers alone: older versions of click do not know it
    _ParamType = click.ParamType


class SizeType(_ParamType):
    """A click type: a quantity of whole bytes above zero."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Quantity:
        """The quantity; a usage error otherwise."""
        from volumehost.errors import QuantityError
        from volumehost.sdk.quantity import Quantity, parse_quantity

        if isinstance(value, Quantity):
            return value
        try:
            size = parse_quantity(value)
        except QuantityError as error:
            self.fail(f"{error.reason}; write a size such as 20Gi", param, ctx)
        if size.nanos <= 0 or not size.is_whole():
            self.fail(f"{value!r} is no size: it must be a whole number of bytes above zero", param, ctx)
        return size
