"""The API server as a process: ``python -m volumehost.testing.api_server --kubeconfig-out FILE``.

It says where it serves on standard output, in one line, and ends on SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from volumehost.testing.api_server.server import ApiServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(
        prog="python -m volumehost.testing.api_server", description="A small, strict Kubernetes API server in memory."
    )
    parser.add_argument("--kubeconfig-out", required=True, metavar="FILE", help="where to write a kubeconfig")
    parser.add_argument("--user", default="admin", help="for whom; admin may do everything")
    parser.add_argument("--port", type=int, default=0, help="the port on the loopback interface; 0 for a free one")
    parser.add_argument("--objects", action="append", default=[], metavar="FILE", help="manifests to begin with")
    parser.add_argument("--tls", action="store_true", help="serve HTTPS")
    parser.add_argument("--rbac", action="store_true", help="enforce roles and bindings")
    parser.add_argument(
        "--controllers",
        action="store_true",
        help="collect garbage, protect storage in use, keep service accounts, as every cluster does",
    )
    options = parser.parse_args(arguments)
    # Blocked before there are threads, so that all of them leave the signals to this one.
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with ApiServer(
        port=options.port,
        tls=options.tls,
        rbac=options.rbac,
        garbage_collector=options.controllers,
        protection=options.controllers,
        service_accounts=options.controllers,
    ) as server:
        for path in options.objects:
            server.objects.load(path)
        server.kubeconfig(options.kubeconfig_out, user=options.user)
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        signal.sigwait(signals)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
