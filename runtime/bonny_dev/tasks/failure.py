"""Failure: how a task reports an error: one sentence on stderr and an exit code, never a traceback.

You need it to declare a task: use its `task` instead of invoke's. The sentence is written where the error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeAlias, cast

import invoke.tasks
from invoke.exceptions import Exit

from bonny.errors import ApiError, UsageError

Body: TypeAlias = Callable[..., int | None]


def task(**options: Any) -> Callable[[Body], invoke.tasks.Task[Any]]:
    """As `invoke.task`; a function may also return the exit code, and its errors are shown in one sentence."""

    def decorated(body: Body) -> invoke.tasks.Task[Any]:
        @wraps(body)
        def run(*arguments: Any, **flags: Any) -> None:
            with in_one_sentence():
                if code := body(*arguments, **flags):
                    raise Exit(code=code)

        return cast("invoke.tasks.Task[Any]", invoke.tasks.task(run, **options))

    return decorated


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn a `UsageError`, an `ApiError` or a package that is not installed into invoke's `Exit` with code 2."""
    try:
        yield
    except (UsageError, ApiError) as error:
        raise Exit(f"{error}", code=2) from error
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "bonny", "bonny_dev"}:
            raise
        sentence = (
            f"{missing} is not installed here: run `uv sync`, or `pip install -e '.[dev]'`, and try again; if that "
            "does not help, add it to pyproject.toml, or correct its name"
        )
        raise Exit(sentence, code=2) from error
