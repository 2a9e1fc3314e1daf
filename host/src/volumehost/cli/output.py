"""Machine output: one value as JSON or YAML on stdout. Every command with ``-o`` ends here."""

from __future__ import annotations

from typing import Any

import click


def echo_data(value: Any, output: str) -> None:
    """Print plain data (mappings, lists, strings, numbers) as ``json`` or ``yaml``, keys in the order given."""
    if output == "yaml":
        from volumehost.api.yaml_writer import dump_yaml

        click.echo(dump_yaml(value), nl=False)
        return
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
