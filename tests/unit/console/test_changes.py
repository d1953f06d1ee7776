"""Which fields a write of the operator changed, as two versions of an object show it."""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.console.changes import PATHS, changes, written

OURS = "watched/"


def config_map(data: dict[str, Any], *entries: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "a", "managedFields": list(entries)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def entry(
    *names: str, manager: str = "watched/ClockController", time: str = "1", subresource: str = ""
) -> dict[str, Any]:
    found = {"manager": manager, "operation": "Apply", "time": time}
    fields = {"f:data": {f"f:{name}": {} for name in names}}
    return {**found, "fieldsV1": fields, **({"subresource": subresource} if subresource else {})}


def test_a_write_adds_changes_and_removes_fields() -> None:
    before = config_map({"kept": "1", "other": "1", "gone": "1"}, entry("kept", "other", "gone"))
    live = config_map({"kept": "1", "other": "2", "new": "1"}, entry("kept", "other", "new", time="2"))
    ((subresource, found),) = written(live, before, OURS)
    assert (subresource, sorted(found)) == ("", ["+data.new", "-data.gone", "~data.other"])


def test_a_creation_names_the_new_fields() -> None:
    assert [*written(config_map({"a": "1"}, entry("a")), {}, OURS)] == [("", ["+data"])]


@pytest.mark.parametrize("time", ["1", "2"])
def test_a_write_of_another_manager_is_not_ours(time: str) -> None:
    """It may take a field from our entry, whose time stays then."""
    before = config_map({"a": "1", "b": "1"}, entry("a", "b"))
    live = config_map({"a": "1", "b": "2"}, entry("a"), entry("b", manager="kubectl", time=time))
    assert [*written(live, before, OURS)] == []


def test_a_status_is_another_write() -> None:
    before = config_map({"a": "1"}, entry("a", subresource="status"))
    live = config_map({"a": "2"}, entry("a", subresource="status", time="2"))
    assert [*written(live, before, OURS)] == [("status", ["~data.a"])]


def test_many_fields_are_counted() -> None:
    before = config_map({}, entry("first"))
    names = [f"n{number}" for number in range(PATHS + 5)]
    ((_, found),) = written(config_map(dict.fromkeys(names, "1"), entry(*names, time="2")), before, OURS)
    assert (len(found), found[-1]) == (PATHS + 1, "and 5 more")


def test_items_of_lists_are_compared_by_their_place_and_not_quoted() -> None:
    assert [*changes({"ports": [{"port": 1}, {"port": 2}]}, {"ports": [{"port": 1}, {"port": 3}]})] == ["~ports[].port"]
    assert [*changes({"ports": [1]}, {"ports": [1, 2]})] == ["~ports"]
