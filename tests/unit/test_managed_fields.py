"""managedFields of another version: what a schema has stays owned, and no ownership is invented or lost."""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.tasks.managed_fields import ANYTHING, fitting, relabelled

PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "protocol"],
    "items": {"type": "object", "properties": {"name": {}, "protocol": {}, "port": {"type": "integer"}}},
}
SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "limits": {"type": "object", "properties": {"cpu": {"type": "string"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "additionalProperties": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "ports": PORTS,
        "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}
SCHEMA: dict[str, Any] = {"properties": {"spec": SPEC, "metadata": ANYTHING}}
PORT = 'k:{"name":"http","protocol":"TCP"}'


def entry(version: str, fields: dict[str, Any], *, manager: str = "kubectl", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "apiVersion": f"x.io/{version}", "fieldsV1": fields, **more}


def of_v1(each: dict[str, Any]) -> bool:
    return str(each["apiVersion"]).endswith("/v1")


@pytest.mark.parametrize(
    "fields",
    [
        {"f:size": {}},
        {"f:limits": {}},
        {"f:limits": {".": {}, "f:cpu": {}}},
        {"f:labels": {"f:app.kubernetes.io/name": {}}},
        {"f:any": {"f:a": {"f:b": {}}}},
        {"f:free": {"f:a": {"f:b": {}, 'k:{"x":1}': {".": {}}}}},
        {"f:ports": {PORT: {".": {}, "f:name": {}, "f:port": {}}}},
        {"f:names": {".": {}, 'v:"a"': {}}},
    ],
    ids=str,
)
def test_fields_that_the_schema_has_stay(fields: dict[str, Any]) -> None:
    whole = {"f:spec": fields, "f:metadata": {"f:labels": {"f:a": {}}}}
    assert fitting(whole, SCHEMA) == whole


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"f:old": {}}, {}),
        ({"f:old": {}, "f:size": {}}, {"f:size": {}}),
        ({"f:size": {"f:max": {}}}, {}),  # owning a part of it was not owning all of it
        ({"f:limits": {"f:old": {}}}, {}),
        ({"f:ports": {".": {}, 'k:{"name":"http"}': {"f:port": {}}}}, {"f:ports": {".": {}}}),
        ({"f:limits": {'k:{"name":"http"}': {".": {}}}}, {}),
        ({"f:limits": {'v:"a"': {}}}, {}),
    ],
    ids=str,
)
def test_fields_that_the_schema_lacks_are_left_out(fields: dict[str, Any], kept: dict[str, Any]) -> None:
    assert fitting({"f:spec": fields}, SCHEMA) == ({"f:spec": kept} if kept else {})


def test_only_entries_that_go_are_changed() -> None:
    stays = entry("v2", {"f:spec": {"f:unknown": {}}}, manager="other", time="2026-01-01T00:00:00Z")
    goes = entry("v1", {"f:spec": {"f:size": {}, "f:old": {}}}, subresource="status", time="2025-01-01T00:00:00Z")
    assert relabelled([stays, goes], of_v1, "x.io/v2", SCHEMA) == [
        stays,
        {**goes, "apiVersion": "x.io/v2", "fieldsV1": {"f:spec": {"f:size": {}}}},
    ]


def test_an_entry_without_a_field_that_stays_goes() -> None:
    assert relabelled([entry("v1", {"f:spec": {"f:old": {}}})], of_v1, "x.io/v2", SCHEMA) == []


def test_two_updates_of_one_manager_become_one_entry_with_the_fields_of_both() -> None:
    first = entry("v1", {"f:spec": {"f:size": {}, "f:limits": {"f:cpu": {}}}})
    second = entry("v2", {"f:spec": {"f:limits": {".": {}}}})
    status = entry("v2", {"f:spec": {"f:size": {}}}, subresource="status")
    assert relabelled([first, second, status], of_v1, "x.io/v2", SCHEMA) == [
        {**second, "fieldsV1": {"f:spec": {"f:size": {}, "f:limits": {"f:cpu": {}, ".": {}}}}},
        status,
    ]
