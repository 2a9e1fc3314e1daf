"""Whatever is asked, the answer is an object or a Status, never a fault of the server's own."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from volumehost.testing.api_server.messages import HttpRequest
from volumehost.testing.api_server.resources import resources

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "n1", "1Gi", "x.y/z"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("metadata", "spec", "status", "name", "namespace", "labels", "finalizers", "rules", "subjects"),
                    *("containers", "volumes", "resources", "requests", "storage", "$patch", "op", "path", "value"),
                    *("nodeName", "preconditions", "uid", "deleteOptions", "target", "resourceVersion", "kind"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
_PATHS = [
    f"/{'api' if group == 'v1' else 'apis'}/{group}{scope}/{plural}{rest}"
    for (group, plural), resource in resources().items()
    for scope in (["/namespaces/default"] if resource.namespaced else [""])
    for rest in ("", "/n1", "/n1/status", "/n1/token", "/n1/binding", "/n1/eviction", "/n1/finalize")
]
_QUERY = st.sampled_from(["", "?dryRun=All", "?limit=1", "?fieldManager=a&force=true", "?continue=e30", "?watch=1"])
_TYPES = st.sampled_from(
    [
        *("application/json", "application/merge-patch+json", "application/json-patch+json"),
        *("application/strategic-merge-patch+json", "application/apply-patch+yaml"),
    ]
)


@pytest.fixture
def api(server) -> Any:
    return server._api


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    path=st.sampled_from(_PATHS),
    query=_QUERY,
    content_type=_TYPES,
    body=_JSON,
)
def test_any(api, server, method, path, query, content_type, body) -> None:
    headers = {"authorization": f"Bearer {server.token()}", "content-type": content_type}
    request = HttpRequest(method, path + query, headers, json.dumps(body).encode())
    found = api.answer(request, lambda: False)
    found.finish()
    assert found.code != 500, found.body
    if found.stream is None:
        assert json.loads(found.body)["kind"]
