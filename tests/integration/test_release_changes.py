"""Changes that `invoke crd-check` refuses or allows, and what a real API server makes of an object in both releases."""

from __future__ import annotations

from typing import Any

from bonny.resource import Resource
from bonny_dev.release.schemas import compare
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator

Fields = dict[str, Any]

# Fields before and after, the spec of an object of the release before, and fields that are required after.
NARROWER: list[tuple[Fields, Fields, Fields, list[str]]] = [
    ({"x": {"type": "string"}}, {}, {"x": "a"}, []),
    ({"x": {"type": "integer"}}, {"x": {"type": "string"}}, {"x": 1}, []),
    ({"x": {"type": "string", "enum": ["a", "b"]}}, {"x": {"type": "string", "enum": ["a"]}}, {"x": "b"}, []),
    ({"x": {"type": "string"}}, {"x": {"type": "string"}}, {}, ["x"]),
    ({"x": {"type": "integer"}}, {"x": {"type": "integer", "maximum": 3}}, {"x": 4}, []),
    ({"x": {"type": "string"}}, {"x": {"type": "string", "pattern": "^a"}}, {"x": "b"}, []),
    ({"x": {"type": "string", "nullable": True}}, {"x": {"type": "string"}}, {"x": None}, ["x"]),
    (
        {"x": {"type": "string"}},
        {"x": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'b'"}]}},
        {"x": "b"},
        [],
    ),
]
WIDER: list[tuple[Fields, Fields, Fields, list[str]]] = [
    ({"x": {"type": "string"}}, {"x": {"type": "string"}, "y": {"type": "string"}}, {"x": "a"}, []),
    ({"x": {"type": "integer"}}, {"x": {"type": "number"}}, {"x": 1}, []),
    ({"x": {"type": "integer"}}, {"x": {"x-kubernetes-int-or-string": True}}, {"x": 1}, []),
    ({"x": {"type": "string", "enum": ["a"]}}, {"x": {"type": "string", "enum": ["a", "b"]}}, {"x": "a"}, []),
    ({"x": {"type": "string"}}, {"x": {"type": "string", "default": "a"}}, {}, ["x"]),
    ({"x": {"type": "integer", "maximum": 3}}, {"x": {"type": "integer"}}, {"x": 3}, []),
]


def schema(fields: Fields, required: list[str] = []) -> Resource:  # noqa: B006  it is only read
    spec: Resource = {"type": "object", "properties": fields}
    return {"type": "object", "properties": {"spec": {**spec, "required": required} if required else spec}}


def definition(plural: str, described: Resource) -> Resource:
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": described}}]
    names = {"kind": plural.removesuffix("s").capitalize(), "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.release.example.com"},
        "spec": {"group": "release.example.com", "names": names, "scope": "Cluster", "versions": versions},
    }


def test_the_api_server_agrees_with_each_verdict(sandbox: Sandbox) -> None:
    """An object of the release before is created in a kind of each release: it breaks if the later one does not keep it
    as it was."""
    cases = [*((case, True) for case in NARROWER), *((case, False) for case in WIDER)]
    pairs = [(schema(before), schema(after, required)) for (before, after, _, required), _ in cases]
    definitions = [
        definition(f"{age}{chr(ord('a') + number)}s", described)
        for number, pair in enumerate(pairs)
        for age, described in zip(("old", "new"), pair, strict=True)
    ]
    with Administrator(sandbox) as admin, admin.installed(definitions):
        for number, ((_, _, spec, _), breaks) in enumerate(cases):
            assert any(change.breaks for change in compare(*pairs[number])) == breaks, cases[number]
            kept = []
            for age in ("old", "new"):
                plural = f"{age}{chr(ord('a') + number)}s"
                kind = plural.removesuffix("s").capitalize()
                body = {"apiVersion": "release.example.com/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
                path = f"/apis/release.example.com/v1/{plural}"
                answer = admin.request("POST", path, body)
                kept.append(answer.status == 201 and spec.items() <= answer.body["spec"].items())
                admin.request("DELETE", f"{path}/x")
            assert kept == [True, not breaks], cases[number]
