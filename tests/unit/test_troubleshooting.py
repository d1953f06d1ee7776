"""The page about troubleshooting lists every warning, reason of a failure and exit code, and no others."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import bonny
from bonny.pipeline import failure_of
from tests.support.telemetry_page import table

RUNTIME: Final = Path(bonny.__file__).parent
PAGE: Final = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
# The class of what a handler raised is the reason; `Waiting` is that of `Wait`.
RAISED: Final = {"Paused", "Retry", "Terminal", "Throttled", "Waiting"}


def rows(first: str) -> list[list[str]]:
    """The rows of all tables whose first column has that title, without marks of code."""
    tables = re.findall(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text("utf-8"), re.MULTILINE)
    lines = [line for each in tables for line in each.splitlines()]
    return [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in lines]


def calls() -> Iterator[ast.Call]:
    for path in sorted(RUNTIME.rglob("*.py")):
        yield from (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))


def test_every_warning_and_every_error_has_one_row() -> None:
    """`test_telemetry_page.py` compares the other page with the code."""
    wanted = [message for message, levels, _ in table("message") if {"warning", "error"} & set(levels.split(", "))]
    assert sorted(row[0] for row in rows("message")) == sorted(wanted)


def test_every_reason_of_the_condition_has_a_row() -> None:
    constants = [
        node.value for node in ast.walk(ast.parse(inspect.getsource(failure_of))) if isinstance(node, ast.Constant)
    ]
    reasons = {value for value in constants if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Za-z]+", value)}
    assert {row[0] for row in rows("reason")} == reasons | RAISED


def test_every_reason_of_a_warning_event_has_a_row() -> None:
    events = [call for call in calls() if isinstance(call.func, ast.Name) and call.func.id == "Event"]
    reasons = [call.args[1] for call in events if ast.unparse(call.args[0]) == "EventType.WARNING"]
    constant = {str(reason.value) for reason in reasons if isinstance(reason, ast.Constant)}
    assert {row[0] for row in rows("event")} == constant


def exit_codes() -> Iterator[object]:
    """The values of constants that are named so, and the numbers with which the process is ended."""
    for path in sorted(RUNTIME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=code)):
                    yield from [code] if name.endswith("EXIT_CODE") else []
                case ast.Call(func=ast.Attribute(attr="_exit"), args=[ast.Constant(value=code)]):
                    yield code
                case ast.Return(value=ast.Constant(value=code)) if path.name == "main.py":
                    yield code


def test_every_exit_code_has_a_row() -> None:
    assert {row[0] for row in rows("code")} == {str(code) for code in exit_codes() if type(code) is int}


def test_every_row_has_a_cause_and_a_fix() -> None:
    for first in ("message", "reason", "event", "code"):
        assert all(len(row) == 3 and all(row) for row in rows(first)), first
