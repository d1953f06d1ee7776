"""Examples of the reference: the functions in docs/reference/examples, whose parameters are fixtures."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Example:
    """One function of one page."""

    page: str
    function: Callable[..., Any]

    @property
    def fixtures(self) -> list[str]:
        return list(inspect.signature(self.function).parameters)

    @property
    def needs_a_server(self) -> bool:
        return not {"sandbox", "client"}.isdisjoint(self.fixtures)

    def __str__(self) -> str:
        return f"{self.page}-{self.function.__name__}"


def examples_of(page: str) -> list[Example]:
    """The examples of a page, in their order there."""
    module = importlib.import_module(f"docs.reference.examples.{page}")
    return [
        Example(page, value)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


async def run(example: Example, request: pytest.FixtureRequest) -> None:
    """Run it as a test."""
    result = example.function(**{name: request.getfixturevalue(name) for name in example.fixtures})
    if inspect.isawaitable(result):
        await result
