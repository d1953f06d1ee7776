"""Request info, against the truth: the API server's audit log says for each request what it understood."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from urllib.parse import quote, unquote, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from bonny_dev.manifest.request_info import RequestInfo, request_info
from bonny_dev.sandbox import Sandbox

Understood: TypeAlias = Callable[[str, str, dict[str, str]], RequestInfo]

# The API server refuses it before it looks any further.
WATCHES_NOTHING = re.compile(r"(/api/[^/]+|/apis/[^/]+/[^/]+)/watch")
POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
"""


@pytest.fixture(scope="module")
def understood(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Understood]:
    """Sends a request, and returns what the audit log says of it."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "policy.yaml").write_text(POLICY, "utf-8")
    log = folder / "audit.log"
    flags = [f"--audit-policy-file={folder}/policy.yaml", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
    with Sandbox(apiserver_flags=flags) as sandbox:
        read_from = 0

        def send(method: str, path: str, query: dict[str, str]) -> RequestInfo:
            nonlocal read_from
            mark = str(uuid.uuid4())
            exchange(sandbox, method, f"{path}?{urlencode(query)}", mark)
            with log.open("rb") as file:
                file.seek(read_from)
                lines = file.readlines()
                read_from = file.tell()
            # Later stages also name what the server learnt from the body.
            (told,) = [
                event
                for event in map(json.loads, lines)
                if event["auditID"] == mark and event["stage"] == "RequestReceived"
            ]
            return as_info(told)

        yield send


def exchange(sandbox: Sandbox, method: str, target: str, mark: str) -> None:
    """Only the head of the answer is waited for: a watch goes on."""
    trust = ssl.create_default_context(cafile=str(sandbox.ca_file))
    connection = http.client.HTTPSConnection(urlsplit(sandbox.url).netloc, context=trust, timeout=30.0)
    try:
        connection.request(method, target, headers={"Authorization": f"Bearer {sandbox.token}", "Audit-ID": mark})
        connection.getresponse().close()
    finally:
        connection.close()


def as_info(event: dict[str, Any]) -> RequestInfo:
    about = event.get("objectRef")
    if about is None:
        return RequestInfo(event["verb"], url=unquote(urlsplit(event["requestURI"]).path))
    keys = ("apiGroup", "resource", "subresource", "namespace", "name")
    return RequestInfo(event["verb"], *(about.get(key, "") for key in keys))


PIECES = st.sampled_from(
    ["namespaces", "pods", "things", "a", "status", "finalize", "scale", "watch", "system:x", "v1"]
)
ROOTS = st.sampled_from(["/api/v1", "/apis/apps/v1", "/apis/example.com/v1", "/api", "/apis", "/healthz", "/version"])
SELECTORS = ["metadata.name=a", "metadata.name==a", "spec.size=1,metadata.name=a", "metadata.name!=a", "metadata.name="]
QUERIES = st.fixed_dictionaries(
    {"timeoutSeconds": st.just("1")},
    optional={
        "watch": st.sampled_from(["true", "1", "false", "False", "0", "", "yes"]),
        "fieldSelector": st.sampled_from([*SELECTORS, "metadata.name=a%2Fb", "metadata.name=..", "metadata.name=a/b"]),
        "dryRun": st.just("All"),
        "limit": st.just("5"),
    },
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
    root=ROOTS,
    pieces=st.lists(PIECES, max_size=6),
    query=QUERIES,
)
@example(method="GET", root="/api/v1", pieces=["namespaces", "a", "pods"], query={"watch": "1", "timeoutSeconds": "1"})
@example(method="GET", root="/apis", pieces=["namespaces", "namespaces", "watch", "a"], query={"timeoutSeconds": "1"})
@example(method="DELETE", root="/apis/apps/v1", pieces=["things"], query={"fieldSelector": "metadata.name=a"})
def test_the_api_server_understands_a_request_as_we_do(
    understood: Understood, method: str, root: str, pieces: list[str], query: dict[str, str]
) -> None:
    path = "/".join([root, *(quote(piece, safe="") for piece in pieces)])
    assume(not WATCHES_NOTHING.fullmatch(path))

    assert request_info(method, path, query) == understood(method, path, query)
