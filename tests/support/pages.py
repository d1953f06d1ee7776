"""Pages: tables of the documentation, for tests that compare them with what they tell of."""

from __future__ import annotations

import re

from tests.support.baking import TEMPLATE

__all__ = ["SECURITY", "rows"]

SECURITY = (TEMPLATE / "docs" / "security.md").read_text("utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading, without marks of code."""
    (table,) = re.findall(rf"^\| {heading} .*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in table.splitlines()]
