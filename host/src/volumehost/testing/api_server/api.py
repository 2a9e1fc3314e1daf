"""Api: from a request as it was read to its answer: who, whether, what, and what goes wrong on purpose."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import formatdate

from volumehost.api.objects import TokenRequest
from volumehost.testing.api_server.access import Access, Attributes
from volumehost.testing.api_server.applying import apply
from volumehost.testing.api_server.cluster import Cluster, view
from volumehost.testing.api_server.deleting import delete, delete_collection, read_options
from volumehost.testing.api_server.discovery import discover
from volumehost.testing.api_server.failures import StatusError, no_such_path
from volumehost.testing.api_server.faults import Faults, Rule
from volumehost.testing.api_server.incoming import as_struct, read_data, read_object
from volumehost.testing.api_server.kinds import Binding, Eviction
from volumehost.testing.api_server.messages import Answer, DroppedError, HttpRequest, answer, failure_answer
from volumehost.testing.api_server.ownership import Manager, Ownership
from volumehost.testing.api_server.patching import APPLY, read_patch
from volumehost.testing.api_server.pod_calls import bind, evict
from volumehost.testing.api_server.reading import get, list_objects
from volumehost.testing.api_server.recording import Request, Requests
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.routing import Route, route
from volumehost.testing.api_server.storage import Document
from volumehost.testing.api_server.users import User, Users, user_of
from volumehost.testing.api_server.watching import Watches, error_line
from volumehost.testing.api_server.writing import Noted, create, storage_resource, update

_LOGGER = logging.getLogger(__name__)

#: Whether whoever asked has hung up.
IsGone = Callable[[], bool]


@dataclass(frozen=True)
class Api:
    """The API server without its sockets."""

    cluster: Cluster
    users: Users
    access: Access
    watches: Watches
    faults: Faults
    requests: Requests
    ownership: Ownership

    def answer(self, request: HttpRequest, is_gone: IsGone) -> Answer:
        """Answer a request, whatever it is; noted in the record.

        :raises DroppedError: the connection is to be reset instead.
        """
        record = Request(
            request.method.lower(),
            request.path,
            query=request.query,
            content_type=request.content_type,
            user_agent=request.headers.get("user-agent", ""),
            at=time.monotonic(),
        )
        self.requests.add(record)
        try:
            found = self._answer(request, record, is_gone)
        except StatusError as failure:
            found = failure_answer(failure)
        except DroppedError:
            raise
        except Exception as error:
            # A fault of this server, not of whoever asked: told as a real one tells of its own.
            _LOGGER.exception("%s %s", request.method, request.target)
            found = failure_answer(StatusError(500, f"Internal error occurred: {error!r}"))
        record.code = found.code
        found.headers["Date"] = formatdate(self.cluster.clock(), usegmt=True)
        return found

    def _answer(self, request: HttpRequest, record: Request, is_gone: IsGone) -> Answer:
        user = self._user(request)
        record.user = user.name
        where = route(request)
        resource = where.resource
        record.verb = where.verb
        if resource is not None:
            record.group, record.version, record.resource = resource.group, resource.version, resource.plural
            record.subresource, record.namespace, record.name = where.subresource, where.namespace, where.name
        rule = self.faults.take(record)
        if rule is None:
            return self._work(request, where, user, is_gone)
        if rule.after_events is not None:
            found = self._work(request, where, user, is_gone)
            if found.stream is not None:
                found.stream = self._cut(found.stream, rule, is_gone)
            return found
        if rule.when == "before" and not rule.truncate:
            return self._misbehave(rule, is_gone) or self._work(request, where, user, is_gone)
        done = self._work(request, where, user, is_gone)
        done.cut = rule.truncate and done.stream is None
        return self._misbehave(rule, is_gone) or done

    def _user(self, request: HttpRequest) -> User:
        if request.certified is not None:
            return user_of(*request.certified)  # it counts before a token
        return self.users.identify(request.headers.get("authorization", ""))

    # --- faults -------------------------------------------------------------------------------------------------

    def _misbehave(self, rule: Rule, is_gone: IsGone) -> Answer | None:
        """Do what a rule says; None when it was only to take its time."""
        if rule.delay:
            self._idle(is_gone, rule.delay)
        if rule.hang:
            self._idle(is_gone, None)
        if rule.drop or rule.hang:
            raise DroppedError
        if rule.body is not None:
            return Answer(rule.code or 200, rule.body, rule.content_type, _retry_after(rule))
        return failure_answer(_failure(rule)) if rule.code else None

    def _idle(self, is_gone: IsGone, seconds: float | None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while not (self.cluster.stopping.is_set() or is_gone()):
            left = 0.1 if end is None else min(0.1, end - time.monotonic())
            if left <= 0:
                return
            self.cluster.stopping.wait(left)

    def _cut(self, stream: Iterator[bytes], rule: Rule, is_gone: IsGone) -> Iterator[bytes]:
        """A stream that goes wrong after so many events."""
        sent = 0
        while rule.after_events is None or sent < rule.after_events:
            line = next(stream, None)
            if line is None:
                return
            sent += 1
            yield line
        if rule.delay:
            self._idle(is_gone, rule.delay)
        if rule.truncate:
            line = next(stream, b"")
            yield line[: len(line) // 2]
        if rule.hang:
            self._idle(is_gone, None)
        if rule.drop or rule.hang:
            raise DroppedError
        if rule.code:
            yield error_line(_failure(rule))

    # --- work ---------------------------------------------------------------------------------------------------

    def _work(self, request: HttpRequest, where: Route, user: User, is_gone: IsGone) -> Answer:
        resource = where.resource
        if resource is None:
            self.access.check(user, Attributes(where.verb, path=request.path), None)
            if where.verb != "get":
                raise no_such_path()
            return discover(request.path)
        attributes = Attributes(
            where.verb, resource.group, resource.plural, where.subresource, where.namespace, where.name
        )
        self.access.check(user, attributes, resource)
        dry = _is_dry(request)
        match where.verb:
            case "get":
                return get(self.cluster, where, request.query)
            case "list":
                return list_objects(self.cluster, where, request.query)
            case "watch":
                return self.watches.open(where, request.query, is_gone)
            case "create":
                return self._create(request, where, resource, user, dry=dry)
            case "update":
                return self._update(request, where, resource, dry=dry)
            case "patch":
                return self._patch(request, where, resource, dry=dry)
            case "delete":
                return delete(self.cluster, where, read_options(request))
            case _:
                return delete_collection(self.cluster, where, read_options(request), request.query)

    def _create(self, request: HttpRequest, where: Route, resource: Resource, user: User, *, dry: bool) -> Answer:
        if where.subresource:
            return self._below(request, where, dry=dry)
        if not resource.known.stored:
            return answer(self._review(read_object(request, resource), user), 201)
        document = read_object(request, resource)
        stored = create(self.cluster, resource, where.namespace, document, dry=dry, noted=self._noted(request, where))
        return answer(view(resource, stored), 201)

    def _below(self, request: HttpRequest, where: Route, *, dry: bool) -> Answer:
        data = read_data(request)
        match where.subresource:
            case "token":
                wanted = as_struct(data, TokenRequest)
                return answer(self.users.request_token(where.namespace, where.name, wanted), 201)
            case "binding":
                return bind(self.cluster, where, as_struct(data, Binding), dry=dry)
            case _:
                return evict(self.cluster, where, as_struct(data, Eviction))

    def _review(self, review: Document, user: User) -> Document:
        spec = review.get("spec") or {}
        match review["kind"]:
            case "SelfSubjectAccessReview":
                return self.access.review(user, review)
            case "SubjectAccessReview":
                return self.access.review(User(spec.get("user", ""), tuple(spec.get("groups") or ())), review)
            case "SelfSubjectReview":
                return review | {"status": {"userInfo": _user_info(user)}}
            case _:
                holder = self.users.holder(str(spec.get("token", "")), spec.get("audiences") or ())
                good = {"authenticated": True, "user": _user_info(holder)} if holder else {"authenticated": False}
                return review | {"status": good}

    def _update(self, request: HttpRequest, where: Route, resource: Resource, *, dry: bool) -> Answer:
        document = read_object(request, resource)
        kept = storage_resource(where)
        key = (where.namespace if resource.namespaced else "", where.name)
        document["metadata"].setdefault("name", where.name)
        if kept.create_on_update and self.cluster.storage.get(kept, key) is None:
            document["metadata"].pop("resourceVersion", None)
            document["metadata"].pop("uid", None)
            made = create(self.cluster, resource, where.namespace, document, dry=dry, noted=self._noted(request, where))
            return answer(view(resource, made), 201)
        if kept is not resource:
            document |= {"apiVersion": kept.api_version}
        stored = update(self.cluster, where, lambda _stored: document, dry=dry, noted=self._noted(request, where))
        return answer(view(resource, stored))

    def _patch(self, request: HttpRequest, where: Route, resource: Resource, *, dry: bool) -> Answer:
        if request.content_type == APPLY:
            stored, new = apply(self.cluster, self.ownership, where, read_data(request), request.query, dry=dry)
            return answer(view(resource, stored), 201 if new else 200)
        change = read_patch(request, resource)
        stored = update(self.cluster, where, change, dry=dry, noted=self._noted(request, where))
        return answer(view(resource, stored))

    def _noted(self, request: HttpRequest, where: Route) -> Noted:
        """Has the changes that a request makes belong to whoever makes it."""
        agent = request.headers.get("user-agent", "").partition("/")[0]
        name = request.query.get("fieldManager") or agent[:128] or "unknown"
        manager = Manager(name, subresource=where.subresource)
        return lambda old, new: self.ownership.written(manager, old, new, now=self.cluster.clock())


def _is_dry(request: HttpRequest) -> bool:
    text = request.query.get("dryRun", "")
    if text not in ("", "All"):
        raise StatusError(
            422,
            f'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "{text}": supported values: "All"',
        )
    return bool(text)


def _user_info(user: User) -> Document:
    return {"username": user.name, "groups": list(user.groups)}


def _failure(rule: Rule) -> StatusError:
    return StatusError(rule.code, rule.message, reason=rule.reason, retry_after=rule.retry_after)


def _retry_after(rule: Rule) -> dict[str, str]:
    return {} if rule.retry_after is None else {"Retry-After": str(rule.retry_after)}
