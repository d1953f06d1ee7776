"""Figures and names in tools and pages that repeat those of other files."""

from __future__ import annotations

import re
from pathlib import Path

from tools.lines import ASIDE, PATH

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime/bonny"


def test_each_module_of_the_hot_path_exists() -> None:
    """A module that was renamed would no longer be counted."""
    assert [name for name in (*PATH, *ASIDE) if not (RUNTIME / name).exists()] == []
    assert [name for name in ASIDE if not name.startswith(tuple(PATH))] == []


def test_the_cpu_of_an_object_in_the_production_page_is_that_of_the_benchmarks() -> None:
    """Regression: the page had 1.2 ms long after it was measured as 1.0."""
    measured = re.search(r"^\| child and status .*? CPU us an object \| ([\d,]+) \|", benchmarks(), re.MULTILINE)
    page = (ROOT / "docs/production.md").read_text("utf-8")
    stated = re.search(r"about ([\d.]+) ms per watch event, and ([\d.]+) ms per created object", page)
    update = re.search(r"^\| update .*? CPU us \| ([\d,]+) \|", benchmarks(), re.MULTILINE)

    assert measured is not None
    assert stated is not None
    assert update is not None
    assert [float(figure) for figure in stated.groups()] == [
        round(int(found[1].replace(",", "")) / 1000, 1) for found in (update, measured)
    ]


def benchmarks() -> str:
    return (ROOT / "docs/benchmarks.md").read_text("utf-8")
