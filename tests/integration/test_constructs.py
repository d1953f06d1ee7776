"""What CustomResourceDefinitions of other projects say, tried once on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bonny.api import Version
from bonny.errors import InvalidObject
from bonny.resource import Resource
from bonny_dev.crd import check_object
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer
from tests.support.constructs import CONSTRUCTS, Beside, Optional, Untyped, every_construct

pytestmark = pytest.mark.server

GROUP = "constructs.k8s.io"
EVERY = every_construct()
EVERY.group, EVERY.crd_annotations = GROUP, Beside.crd_annotations
VERSIONS: tuple[type[Version], ...] = (EVERY, Beside, Optional, Untyped)


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    with Administrator(sandbox) as server, server.installed(crds(VERSIONS, GROUP)):
        yield server


def tried(server: Administrator, version: type[Version], name: str = "tried", **fields: object) -> Answer:
    """The answer to a creation without storing, with unknown fields refused."""
    return server.request("POST", f"{path(version)}?dryRun=All&fieldValidation=Strict", thing(version, name, **fields))


def path(version: type[Version]) -> str:
    return f"/apis/{GROUP}/v1/{version.plural}"


def thing(version: type[Version], name: str, **fields: object) -> Resource:
    return {"apiVersion": f"{GROUP}/v1", "kind": version.kind, "metadata": {"name": name}, **fields}


def test_every_construct_is_checked_by_the_api_server_and_read_by_the_model(server: Administrator) -> None:
    for construct in CONSTRUCTS:
        for value in construct.accepted:
            answer = tried(server, EVERY, spec={construct.name: value})
            assert answer.status == 201, (construct.name, answer.message)
            stored = check_object(EVERY, thing(EVERY, "tried", spec={construct.name: value}))["spec"]
            assert answer.body["spec"] == stored, construct.name
            assert EVERY.spec_of(answer.body) == EVERY.spec_of({"spec": stored}), construct.name
        refused = tried(server, EVERY, spec={construct.name: construct.refused})
        assert (refused.status, f"spec.{construct.name}" in refused.message) == (422, True), construct.name
    for text in ("", "aGk", "aGk=\n", "a Gk", "aG==", "_w=="):
        answer = tried(server, EVERY, spec={"bytes": text})
        assert (answer.status == 201) == _is_taken(text), (text, answer.message)


def _is_taken(text: str) -> bool:
    try:
        check_object(EVERY, {"spec": {"bytes": text}})
    except InvalidObject:
        return False
    return True


def test_objects_are_taken_with_and_without_what_they_need(server: Administrator) -> None:
    beside = tried(server, Beside, value=3, rules=["a"], data={"a": [1]})
    assert beside.status == 201, beside.message
    read = Beside.read(beside.body)
    assert (read.value, read.rules_, read.data, "spec" in beside.body) == (3, ["a"], {"a": [1]}, False)
    assert (tried(server, Beside).status, tried(server, Beside, value=10).status) == (422, 422)

    assert Optional.spec_of(tried(server, Optional).body) is None
    assert Optional.spec_of(tried(server, Optional, spec={}).body).size == 1
    assert tried(server, Optional, status={"phase": "x"}).body["status"] == {"phase": "x"}
    assert tried(server, EVERY).status == 422

    assert tried(server, Untyped, spec={"a": [1, {"b": None}]}).body["spec"] == {"a": [1, {"b": None}]}
    assert tried(server, Untyped, spec=[]).status == 422


def test_a_status_with_a_default_is_there_from_the_start_and_has_its_required_fields(server: Administrator) -> None:
    made = server.request("POST", path(Beside), thing(Beside, "started", value=1))
    live = server.request("GET", f"{path(Beside)}/started").body
    nothing = {"status": {"conditions": None}}
    refused = server.request("PATCH", f"{path(Beside)}/started/status", nothing, media="merge-patch+json")

    assert made.status == 201, made.message
    assert Beside.read(live).status == Beside.status
    assert check_object(Beside, {"value": 1})["status"] == live["status"]
    assert (refused.status, "status.conditions: Required value" in refused.message) == (422, True)
    definition = server.request(
        "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{Beside.plural}.{GROUP}"
    ).body
    assert definition["metadata"]["labels"] == {"part-of": "tests"}
    approved = [
        each for each in definition["status"]["conditions"] if each["type"] == "KubernetesAPIApprovalPolicyConformant"
    ]
    assert [each["reason"] for each in approved] == ["UnapprovedAnnotation"]
