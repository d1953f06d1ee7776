"""Permissions: compares what the roles of two releases grant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bonny.resource import Resource

from ..manifest.rbac import Permission, as_rules, rule_text
from ..manifest.rbac import permissions as permissions_of

ROLES = ("Role", "ClusterRole")


def compare(old: Iterable[Resource], new: Iterable[Resource]) -> tuple[list[str], list[str]]:
    """Lines for new rules, and lines for rules that are gone, each after its role."""
    before, after = _granted(old), _granted(new)
    return [*_lines(after, before)], [*_lines(before, after)]


def _granted(objects: Iterable[Resource]) -> dict[str, set[Permission]]:
    found: dict[str, set[Permission]] = {}
    for each in objects:
        if each["kind"] in ROLES:
            role = f"{each['kind']} {each['metadata']['name']}"
            found.setdefault(role, set()).update(permissions_of({"": each.get("rules", ())}))
    return found


def _lines(one: Mapping[str, set[Permission]], other: Mapping[str, set[Permission]]) -> Iterator[str]:
    for role, granted in one.items():
        for rules in as_rules(granted - other.get(role, set())).values():
            yield from (f"{role}: {rule_text(rule)}" for rule in rules)
