"""Checks of a daemon's health as Kubernetes' components tell of them: ``/healthz``, ``/livez`` and ``/readyz``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from volumehost.daemon.http import Answer, Request, Route

#: Name of a check to what is wrong, "" when it is well.
Checks = Mapping[str, str]


def health_routes(alive: Callable[[], Checks], ready: Callable[[], Checks]) -> dict[str, Route]:
    """The routes, for an :class:`~volumehost.daemon.http.HttpServer`.

    :param alive: checks for whoever would restart the process where one fails.
    :param ready: checks for whoever relies on it.
    """

    def live(request: Request) -> Answer:
        return answer_checks("healthz", alive(), verbose="verbose" in request.query)

    def readiness(request: Request) -> Answer:
        return answer_checks("readyz", ready(), verbose="verbose" in request.query)

    return {"/healthz": live, "/livez": live, "/readyz": readiness}


def answer_checks(name: str, checks: Checks, *, verbose: bool) -> Answer:
    """In the form that Kubernetes' components use; what is wrong is told in any case."""
    failed = any(checks.values())
    if not failed and not verbose:
        return Answer.of_text(200, "ok")
    lines = [f"[-]{check} failed: {problem}" if problem else f"[+]{check} ok" for check, problem in checks.items()]
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return Answer.of_text(503 if failed else 200, "\n".join(lines) + "\n")
