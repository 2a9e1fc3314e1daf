"""The resources that are served: those of ``volumehost.api.kinds``, and what else a cluster has that clients need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from volumehost.api.kinds import KINDS, Kind
from volumehost.api.objects import KubeObject
from volumehost.testing.api_server import kinds

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
#: Groups that a custom resource definition serves: their lists, statuses and patches behave differently.
_CUSTOM_GROUPS = frozenset({"snapshot.storage.k8s.io"})
_REVIEWS = "authorization.k8s.io/v1"

#: Kinds that the host does not know. Those without a type are kept as they come.
_OTHERS: tuple[Kind[KubeObject], ...] = (
    Kind(kinds.Namespace, "v1", "Namespace", "namespaces", ("ns",), has_status=True),
    Kind(KubeObject, "v1", "Service", "services", ("svc",), namespaced=True, has_status=True),
    Kind(KubeObject, "coordination.k8s.io/v1", "Lease", "leases", namespaced=True),
    Kind(KubeObject, "events.k8s.io/v1", "Event", "events", ("ev",), namespaced=True),
    Kind(kinds.Role, kinds.RBAC_V1, "Role", "roles", namespaced=True),
    Kind(kinds.RoleBinding, kinds.RBAC_V1, "RoleBinding", "rolebindings", namespaced=True),
    Kind(kinds.ClusterRole, kinds.RBAC_V1, "ClusterRole", "clusterroles"),
    Kind(kinds.ClusterRoleBinding, kinds.RBAC_V1, "ClusterRoleBinding", "clusterrolebindings"),
    Kind(KubeObject, "apps/v1", "Deployment", "deployments", ("deploy",), namespaced=True, has_status=True),
    Kind(KubeObject, "apps/v1", "DaemonSet", "daemonsets", ("ds",), namespaced=True, has_status=True),
    Kind(KubeObject, "apps/v1", "ReplicaSet", "replicasets", ("rs",), namespaced=True, has_status=True),
    Kind(KubeObject, "apps/v1", "StatefulSet", "statefulsets", ("sts",), namespaced=True, has_status=True),
    Kind(KubeObject, "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", ("pdb",), True, True),
    Kind(KubeObject, "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", ("pc",)),
    Kind(
        KubeObject,
        "certificates.k8s.io/v1beta1",
        "PodCertificateRequest",
        "podcertificaterequests",
        namespaced=True,
        has_status=True,
    ),
    Kind(kinds.SelfSubjectAccessReview, _REVIEWS, "SelfSubjectAccessReview", "selfsubjectaccessreviews", stored=False),
    Kind(kinds.SubjectAccessReview, _REVIEWS, "SubjectAccessReview", "subjectaccessreviews", stored=False),
    Kind(kinds.TokenReview, "authentication.k8s.io/v1", "TokenReview", "tokenreviews", stored=False),
    Kind(kinds.SelfSubjectReview, "authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", stored=False),
)

#: What can be created, or read, below an object besides its status: resource to subresources and their kinds.
SUBRESOURCES = {
    "pods": {"binding": "v1/Binding", "eviction": "policy/v1/Eviction"},
    "serviceaccounts": {"token": "authentication.k8s.io/v1/TokenRequest"},
    "namespaces": {"finalize": "v1/Namespace"},
}

# Facts from the strategies of Kubernetes' own registries.
_CONDITIONAL_UPDATES = frozenset(
    {"volumeattachments", "csinodes", "csidrivers", "csistoragecapacities", "leases", "clustertrustbundles"}
)
_CREATE_ON_UPDATE = frozenset({"leases", "events", "roles", "rolebindings", "clusterroles", "clusterrolebindings"})
_RETURN_DELETED = frozenset(
    {
        *("pods", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts", "storageclasses"),
        *("volumeattributesclasses", "volumeattachments", "csidrivers", "csinodes"),
    }
)
_STATUS_KEEPS_METADATA = frozenset({"volumeattachments"})
_GENERATION = frozenset({"pods", "deployments", "daemonsets", "replicasets", "statefulsets", "poddisruptionbudgets"})


@dataclass(frozen=True)
class Resource:
    """One resource of one version of a group, and how its registry behaves."""

    known: Kind[KubeObject]

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        return self.known.group

    @property
    def version(self) -> str:
        """The version in the group."""
        return self.known.api_version.rpartition("/")[2]

    @property
    def api_version(self) -> str:
        """Group and version, as objects name them."""
        return self.known.api_version

    @property
    def kind(self) -> str:
        """The kind of its objects."""
        return self.known.kind

    @property
    def plural(self) -> str:
        """The name in paths."""
        return self.known.plural

    @property
    def namespaced(self) -> bool:
        """Whether its objects have a namespace."""
        return self.known.namespaced

    @property
    def qualified(self) -> str:
        """The name in messages: ``pods``, ``leases.coordination.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be done to it."""
        return _VERBS if self.known.stored else ("create",)

    @property
    def custom(self) -> bool:
        """Whether a custom resource definition serves it."""
        return self.group in _CUSTOM_GROUPS

    @property
    def key(self) -> str:
        """Under which its objects are kept; the two kinds of events are one."""
        return "events" if self.plural == "events" else self.qualified

    @property
    def unconditional_update(self) -> bool:
        """Whether an object may be replaced without saying which state was seen."""
        return not self.custom and self.plural not in _CONDITIONAL_UPDATES

    @property
    def create_on_update(self) -> bool:
        """Whether replacing what is not there makes it."""
        return self.plural in _CREATE_ON_UPDATE

    @property
    def returns_deleted(self) -> bool:
        """Whether a deletion answers with the object rather than with a Status."""
        return self.plural in _RETURN_DELETED

    @property
    def status_keeps_metadata(self) -> bool:
        """Whether a write of the status leaves labels, annotations and finalizers alone."""
        return self.custom or self.plural in _STATUS_KEEPS_METADATA

    @property
    def has_generation(self) -> bool:
        """Whether changes of the spec are counted."""
        return self.custom or self.plural in _GENERATION


def _all() -> dict[tuple[str, str], Resource]:
    found: dict[tuple[str, str], Resource] = {}
    for kind in (*KINDS, *_OTHERS):
        if kind.kind != "TokenRequest":  # only below a service account
            found.setdefault((kind.api_version, kind.plural), Resource(kind))
    return found


@cache
def resources() -> dict[tuple[str, str], Resource]:
    """Every resource by apiVersion and plural name."""
    return _all()


@cache
def find(name: str) -> Resource:
    """The resource of a plural name (``pods``, ``events.events.k8s.io``) or a kind (``Pod``).

    :raises LookupError: none is called so.
    """
    for resource in resources().values():
        if name in (resource.plural, resource.kind, resource.qualified):
            return resource
    raise LookupError(f"the API server serves no {name}")


def of_document(api_version: str, kind: str) -> Resource:
    """The resource that an object belongs to.

    :raises LookupError: there is none.
    """
    for resource in resources().values():
        if (resource.api_version, resource.kind) == (api_version, kind):
            return resource
    raise LookupError(f"the API server serves no {kind} of {api_version}")
