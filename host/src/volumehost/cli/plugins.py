"""``volumehost plugins``: what is loaded, from which distribution, and what is wrong with the rest."""

from __future__ import annotations

from volumehost.cli.command import LazyGroup
from volumehost.cli.options import shared_params

COMMANDS = {
    "list": ("volumehost.cli.plugin_list:list_plugins", "List the installed volume plugins and how they are."),
    "show": ("volumehost.cli.plugin_show:show", "Show everything that is known of one plugin."),
    "check": ("volumehost.cli.plugin_check:check", "Check that plugins load and behave; say what to do if not."),
}

plugins = LazyGroup(
    "plugins",
    table=COMMANDS,
    params=shared_params("output"),
    help="""Show and check the installed volume plugins.

Plugins are found by their entry points, so a plugin is there as soon as pip has installed it.""",
    examples=(
        ("What is there", "volumehost plugins list"),
        ("Whether all of it works", "volumehost plugins check"),
    ),
)
