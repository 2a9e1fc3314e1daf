"""A driver's program, as an author writes it: run by the tests of ``serve`` in a process of its own."""

from __future__ import annotations

import argparse
import sys
import time

from volumehost_csi_kit.server import Driver, DriverDefinitionError, serve


class Node:
    """Publishing ends when somebody kills it."""

    def node_publish_volume(self, request, context):
        print("publishing", flush=True)
        time.sleep(3600)

    def node_unpublish_volume(self, request, context): ...


def make(options):
    if options.arguments.broken:
        raise DriverDefinitionError("no such backend")
    return Driver(options.arguments.name, "1.2.3", node=Node(), node_id=options.node_id)


parser = argparse.ArgumentParser()
parser.add_argument("--name", default="disk.acme.example.com")
parser.add_argument("--broken", action="store_true")
parser.add_argument("--grace", type=float, default=30)
sys.exit(
    serve(
        make,
        parser=parser,
        grace_seconds=parser.parse_known_args()[0].grace,
        on_serving=lambda: print("serving", flush=True),
    )
)
