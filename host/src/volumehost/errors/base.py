"""What every error of this project is: the root of the tree, on which the other modules of this package build."""

from __future__ import annotations


class VolumeHostError(Exception):
    """Base of every error that the host raises on purpose.

    The text has four parts, each also an attribute: ``action`` (what was being done, to what), ``reason``
    (why it failed), ``subject`` (the object's name alone, for programs) and ``hint`` (what to do next).
    """

    def __init__(self, reason: str, *, action: str = "", subject: str = "", hint: str = "") -> None:
        super().__init__(reason, action, subject, hint)
        self.reason = reason
        self.action = action
        self.subject = subject
        self.hint = hint

    def __str__(self) -> str:
        """One line: ``action: reason (hint)``."""
        text = f"{self.action}: {self.reason}" if self.action else self.reason
        return f"{text} ({self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild without calling the subclass's own constructor, so that every error can be pickled."""
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[VolumeHostError], args: tuple[object, ...], state: dict[str, object]) -> VolumeHostError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class SpecError(VolumeHostError):
    """A volume spec is absent, has no source, or is not for the plugin that got it."""
