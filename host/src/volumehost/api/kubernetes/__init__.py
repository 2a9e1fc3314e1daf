"""The Kubernetes backend of ApiClient: an API server behind the same protocol as the embedded store.

:func:`connect` makes a :class:`KubernetesClient` from a kubeconfig or from the pod that this program runs in. Daemons
put a :class:`CachedClient` on top, whose reads of watched kinds cost no request. The ``kubernetes`` distribution (the
extra ``volumehost[kubernetes]``) is imported nowhere else, and only when a connection is made.
"""

from __future__ import annotations

from volumehost.api.kubernetes.cached_client import CachedClient
from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.connecting import connect
from volumehost.api.kubernetes.informer import Handler, Informer, Watched
from volumehost.api.kubernetes.informer_listers import CachedInformerFactory, CachedLister

__all__ = [
    "CachedClient",
    "CachedInformerFactory",
    "CachedLister",
    "Handler",
    "Informer",
    "KubernetesClient",
    "Watched",
    "connect",
]
