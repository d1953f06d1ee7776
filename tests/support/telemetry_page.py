"""The reference page of telemetry as tables, for tests that compare it with what is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bonny import telemetry

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "telemetry.md"


class Keys(NamedTuple):
    """What is always told, and what may be told besides."""

    always: frozenset[str]
    may: frozenset[str]

    def admit(self, told: frozenset[str]) -> bool:
        """Whether these are the keys that the page promises."""
        return self.always <= told <= self.always | self.may


@cache
def table(first: str) -> list[list[str]]:
    """The rows of the table whose first column has that title, without the head."""
    found = re.search(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text("utf-8"), re.MULTILINE)
    assert found is not None, first
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in found[1].splitlines()]


def keys(cell: str) -> Keys:
    """The keys of a cell; those in parentheses may be missing."""
    may = frozenset(re.findall(r"\(`([^`]+)`\)", cell))
    return Keys(frozenset(re.findall(r"`([^`]+)`", cell)) - may, may)


def code(cell: str) -> str:
    """What stands between backticks."""
    return cell.strip("`")


@cache
def events() -> dict[str, tuple[Keys, Keys]]:
    """Measurements and metadata by event."""
    return {code(name): (keys(figures), keys(metadata)) for name, _, figures, metadata in table("event")}


def check(name: str, measurements: Mapping[str, float], metadata: Mapping[str, Any]) -> None:
    """Fails when an event of ours came with other keys than its row says."""
    if name in events():
        of_figures, of_metadata = events()[name]
        assert of_figures.admit(frozenset(measurements)), (name, measurements)
        assert of_metadata.admit(frozenset(metadata) - frozenset(telemetry.events.defaults)), (name, metadata)
