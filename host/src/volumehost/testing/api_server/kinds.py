"""Types of what an API server takes besides the kinds that volumes need, as far as this one looks into it."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects import KubeObject, ObjectReference
from volumehost.api.objects.base import ApiStruct, Opaque, always

RBAC_V1 = "rbac.authorization.k8s.io/v1"
_ACCESS_V1 = "authorization.k8s.io/v1"
_AUTHENTICATION_V1 = "authentication.k8s.io/v1"


class PolicyRule(ApiStruct):
    """What a role allows."""

    verbs: list[str] = []
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []
    non_resource_urls: list[str] = field(default_factory=list, name="nonResourceURLs")


class RoleRef(ApiStruct):
    """The role that a binding gives."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class Subject(ApiStruct):
    """To whom."""

    kind: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class Role(KubeObject):
    """Permissions in a namespace."""

    api_version: str = always(RBAC_V1)
    kind: str = always("Role")
    rules: list[PolicyRule] = []


class ClusterRole(KubeObject):
    """Permissions everywhere, or wherever a binding of a namespace gives them."""

    api_version: str = always(RBAC_V1)
    kind: str = always("ClusterRole")
    rules: list[PolicyRule] = []


class RoleBinding(KubeObject):
    """Gives a role, in its namespace."""

    api_version: str = always(RBAC_V1)
    kind: str = always("RoleBinding")
    subjects: list[Subject] = []
    role_ref: RoleRef = field(default_factory=RoleRef)


class ClusterRoleBinding(KubeObject):
    """Gives a role, everywhere."""

    api_version: str = always(RBAC_V1)
    kind: str = always("ClusterRoleBinding")
    subjects: list[Subject] = []
    role_ref: RoleRef = field(default_factory=RoleRef)


class NamespaceSpec(ApiStruct):
    """What holds a namespace while it has content."""

    finalizers: list[str] = []


class NamespaceStatus(ApiStruct):
    """``phase`` is ``Active`` or ``Terminating``."""

    phase: str = ""


class Namespace(KubeObject):
    """A namespace."""

    api_version: str = always("v1")
    kind: str = always("Namespace")
    spec: NamespaceSpec = field(default_factory=NamespaceSpec)
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ResourceAttributes(ApiStruct):
    """What somebody wants to do to objects."""

    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class NonResourceAttributes(ApiStruct):
    """What somebody wants to do elsewhere."""

    verb: str = ""
    path: str = ""


class AccessReviewSpec(ApiStruct):
    """The question of an access review."""

    user: str = ""
    groups: list[str] = []
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectAccessReview(KubeObject):
    """May I?"""

    api_version: str = always(_ACCESS_V1)
    kind: str = always("SelfSubjectAccessReview")
    spec: AccessReviewSpec = field(default_factory=AccessReviewSpec)


class SubjectAccessReview(KubeObject):
    """May they?"""

    api_version: str = always(_ACCESS_V1)
    kind: str = always("SubjectAccessReview")
    spec: AccessReviewSpec = field(default_factory=AccessReviewSpec)


class TokenReviewSpec(ApiStruct):
    """The question of a token review."""

    PRIVATE = frozenset({"token"})

    token: str = ""
    audiences: list[str] = []


class TokenReview(KubeObject):
    """Whose is it?"""

    api_version: str = always(_AUTHENTICATION_V1)
    kind: str = always("TokenReview")
    spec: TokenReviewSpec = field(default_factory=TokenReviewSpec)


class SelfSubjectReview(KubeObject):
    """Who am I?"""

    api_version: str = always(_AUTHENTICATION_V1)
    kind: str = always("SelfSubjectReview")


class Preconditions(ApiStruct):
    """What must hold for a deletion."""

    uid: str = ""
    resource_version: str = ""


class DeleteOptions(ApiStruct):
    """How to delete."""

    api_version: str = ""
    kind: str = ""
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] = []


class BindingMeta(ApiStruct):
    """As much of the metadata of a binding as goes to the pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] = {}


class Binding(ApiStruct):
    """Gives a pod its node."""

    api_version: str = ""
    kind: str = ""
    metadata: BindingMeta = field(default_factory=BindingMeta)
    target: ObjectReference = field(default_factory=ObjectReference)


class Eviction(ApiStruct):
    """Asks for the end of a pod."""

    api_version: str = ""
    kind: str = ""
    metadata: Opaque | None = None
    delete_options: DeleteOptions | None = None
