"""``volumehost drivers``: the storage drivers outside of this process, CSI drivers, and what is known of them."""

from __future__ import annotations

from volumehost.cli.command import LazyGroup
from volumehost.cli.options import shared_params

COMMANDS = {
    "list": ("volumehost.cli.driver_list:list_drivers", "List the storage drivers and how they are."),
    "show": ("volumehost.cli.driver_show:show", "Show everything that is known of one driver."),
    "register": ("volumehost.cli.driver_register:register", "Register a driver that serves at an endpoint."),
    "unregister": ("volumehost.cli.driver_register:unregister", "Forget a driver that was registered by command."),
    "logs": ("volumehost.cli.driver_logs:logs", "Print what an installed driver has logged."),
}

drivers = LazyGroup(
    "drivers",
    table=COMMANDS,
    params=shared_params("root-dir", "output"),
    help="""Show and register storage drivers (CSI).

A driver that pip has installed is there at once, and is started when a volume needs it. A driver that runs by itself
registers with a socket in plugins_registry under the root directory, or is registered here.""",
    examples=(
        ("What is there", "volumehost drivers list"),
        ("A driver that runs already", "volumehost drivers register csi.example.com /run/acme/csi.sock"),
        ("Why one does not start", "volumehost drivers logs csi.example.com"),
    ),
)
