"""The page about Sieve's bugs: a row for each plan, and each test and operator that it names exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reliability-sieve.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([\w-]+-state-\d) \| .+ \| ([\w ]+) \| (.+) \|$", PAGE, re.MULTILINE)


def test_each_of_the_37_plans_has_one_row() -> None:
    kinds = Counter(re.sub(r".*-(\w+-state)-\d", r"\1", plan) for plan, *_ in ROWS)

    assert kinds == {"stale-state": 19, "intermediate-state": 11, "unobserved-state": 7}
    assert len({plan for plan, *_ in ROWS}) == 37


def test_the_sums_in_the_text_are_those_of_the_rows() -> None:
    sums = dict(re.findall(r"^- \*\*([\w ]+)\*\* \((\d+)\)", PAGE, re.MULTILINE))

    assert {name: int(count) for name, count in sums.items()} == Counter(here for _, here, _ in ROWS)


def test_each_prevented_plan_names_a_test_and_each_other_one_what_finds_it() -> None:
    for plan, here, shown in ROWS:
        pattern = {
            "prevented": r"`test_\w+`",
            "own requests": r"`tests/broken/\w+\.py`",
            "possible": r"`tests/broken/\w+\.py`",
        }[here]
        assert re.fullmatch(pattern, shown), plan


def test_each_test_and_each_operator_that_is_named_exists() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    tests = set(re.findall(r"`(test_\w+)`", PAGE))
    operators = set(re.findall(r"`(tests/broken/\w+\.py)`", PAGE))

    assert {name for name in tests if f"def {name}(" not in sources} == set()
    assert {path for path in operators if not (ROOT / path).is_file()} == set()
    assert tests
    assert operators
    found = (ROOT / "tests" / "faults" / "test_prove.py").read_text("utf-8")
    assert {
        path
        for path in operators
        if f'        "{Path(path).stem}",' not in found and f'Bug("{Path(path).stem}"' not in found
    } == set()
