"""The check of handler asserts finds those that prove nothing, and no others."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tools.handler_asserts import handler_asserts


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("class C(Controller[Thing]):\n def reconcile(self, axn):\n  assert axn", [3]),
        ("class C(PartsController):\n async def finalize(self, axn):\n  if axn:\n   assert axn.uid", [4]),
        ("def test_x():\n def step(axn: Axn[Any]):\n  assert axn.key\n assert step", [3]),
        ("def test_x():\n def run(run: TaskRun):\n  def inner():\n   assert run", [4]),
        ("class A(Admission[Thing]):\n def validate(self, review):\n  assert review.spec", [3]),
        ("class V(Version):\n @staticmethod\n def to_hub(resource):\n  assert resource", [4]),
        ("class W(Watcher):\n def until(self):\n  assert self.shown", []),
        ("class C(Controller[Thing]):\n def reconcile(self, axn):\n  assert axn.status is not None", []),
        ("def check(axn: Axn[Any]):\n assert axn.key", []),
        ("class Told(Base):\n def add(self, told):\n  assert told", []),
    ],
)
def test_asserts_are_found_where_the_runtime_calls_and_nowhere_else(source: str, lines: list[int]) -> None:
    assert list(handler_asserts(ast.parse(dedent(source)))) == lines
