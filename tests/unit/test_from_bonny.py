"""The table of original names: each row leads somewhere, or says why there is nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "from-bonny.md"
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| original")
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_has_a_link_or_a_reason(row: list[str]) -> None:
    original, here, *_ = row
    assert original
    assert re.search(r"\]\([^)]+\)", here) or re.fullmatch(r"none: .{20,}", here), here


def test_a_name_has_one_row_in_its_section() -> None:
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        names = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[1:]
        assert sorted(set(names)) == sorted(names), section.partition("\n")[0]
