"""Failure: how a task reports an error: one sentence on stderr and an exit code, never a traceback.

The sentence is written where the error is raised. Elsewhere: how a task is declared (`declaring`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from invoke.exceptions import Exit

from bonny.errors import ApiError, UsageError


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
