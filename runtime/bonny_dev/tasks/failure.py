"""Failure: how a task tells a person what went wrong: one sentence on stderr and exit code 2, never a traceback.

You need it around the body of every task. What the sentence says is decided where the error is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from invoke.exceptions import Exit

from bonny.errors import ApiError, UsageError

__all__ = ["in_one_sentence"]


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn a `UsageError`, an `ApiError` or a package that is not installed into invoke's `Exit` with code 2."""
    try:
        yield
    except (UsageError, ApiError) as error:
        raise Exit(f"{error}", code=2) from error
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "bonny"}:
            raise
        sentence = (
            f"{missing} is not installed here: run `pip install -e '.[dev]'` and try again; if that does not help, it "
            "is missing in pyproject.toml, or the name is wrong"
        )
        raise Exit(sentence, code=2) from error
