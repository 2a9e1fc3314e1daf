"""The control plane of a machine without a cluster: runs the controllers over one API, in threads of this process.

The volume manager and the command line call it. Nothing runs before :meth:`ControlPlane.start`; a host whose pods use
no claims never starts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject
    from volumehost.loader.manager import VolumePluginManager


class ControlPlane:
    """Runs controllers. Safe for threads; all methods but :meth:`start`, :meth:`stop` and :meth:`wait_until` return at
    once.
    """

    @classmethod
    def for_node(
        cls, api: ApiClient, plugins: VolumePluginManager, node_name: str, *, external_drivers: bool = False
    ) -> ControlPlane:
        """The plane with every controller of this package, for one node that is the whole cluster; cheap.

        :param external_drivers: drivers that this host does not have are served by others, as in a cluster.
        """
        raise NotImplementedError

    @property
    def started(self) -> bool:
        """Whether :meth:`start` was called and :meth:`stop` was not."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin to watch and to work; may be called again, and then costs nothing.

        First creates the objects that drivers of this host bring with them, so that their storage classes are there
        when it returns.
        """

    def stop(self, grace: float) -> bool:
        """Begin nothing more, and wait at most ``grace`` seconds for what runs; whether all of it has ended."""
        raise NotImplementedError

    def settled(self) -> bool:
        """Whether everything written before this call was looked at, and nothing runs or is due now.

        What failed and waits for its next attempt does not count.
        """
        raise NotImplementedError

    def wait_until(self, predicate: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until the predicate holds; it is asked after everything that the plane saw or did.

        :param timeout: seconds.
        :param what: what is waited for, for the error.
        :raises WaitTimeoutError: it does not hold in time; ``details`` tells what every object that failed is at.
        """

    def explain(self, obj: KubeObject) -> list[str]:
        """What is being done for the object or keeps it, one line each: the step, or controller, error, attempts, and
        the seconds until the next; empty when there is nothing to tell.
        """
        raise NotImplementedError
