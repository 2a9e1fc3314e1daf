"""What goes over the agent's control socket: names of calls, and errors that stay what they were on the other side."""

from __future__ import annotations

from typing import Any, Final

from volumehost import errors
from volumehost.errors import VolumeHostError

#: Name of the socket below the root directory.
SOCKET_NAME: Final = "agent.sock"

#: Where calls are found: ``POST /v1/<name>`` with a JSON object of arguments.
PREFIX: Final = "/v1/"

#: Longest body of a request, in bytes: more than any pod's manifest.
LONGEST_BODY: Final = 8 << 20

_SIMPLE = (str, int, float, bool, type(None))


def error_to_wire(error: BaseException) -> dict[str, Any]:
    """The error as plain values: its kind in the tree of errors, its attributes, its notes and its words."""
    kind = next((each for each in type(error).__mro__ if getattr(errors, each.__name__, None) is each), VolumeHostError)
    fields = {name: _plain(value) for name, value in vars(error).items() if not name.startswith("_")}
    if not isinstance(error, VolumeHostError):
        fields = _defect(error)
    return {"kind": kind.__name__, "fields": fields, "notes": [str(note) for note in getattr(error, "__notes__", ())]}


def error_from_wire(data: dict[str, Any]) -> VolumeHostError:
    """The error that :func:`error_to_wire` told of; a kind that is not known here becomes the nearest one that is."""
    kind = getattr(errors, str(data.get("kind")), None)
    if not (isinstance(kind, type) and issubclass(kind, VolumeHostError)):
        kind = VolumeHostError
    fields = {"reason": "the agent told no reason", "action": "", "subject": "", "hint": "", **data.get("fields", {})}
    error = kind.__new__(kind)
    error.args = (fields["reason"], fields["action"], fields["subject"], fields["hint"])
    error.__dict__.update({name: _tuples(value) for name, value in fields.items()})
    for note in data.get("notes", ()):
        error.add_note(str(note))
    return error


def _defect(error: BaseException) -> dict[str, str]:
    return {
        "reason": f"the agent failed: {type(error).__name__}: {error}",
        "action": "",
        "subject": "",
        "hint": "this is a defect of volumehost or of a plugin; the agent's log shows where it happened",
    }


def _plain(value: object) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, _SIMPLE) else str(value)


def _tuples(value: object) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
