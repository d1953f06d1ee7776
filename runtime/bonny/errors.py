"""The errors of this runtime, as one tree; classes differ by what the caller does next.

BonnyError
├── UsageError            a person gave something wrong: one sentence, exit code 2
│   └── OptionError       ... as an option of one of our classes
├── Retry                 raised by handlers: try again later, not an error
├── Terminal              raised by handlers: stop until something changes
├── AlreadyApplied        a handler changed what was already sent
├── StepError             a pipeline step failed; names the step
│   ├── ForeignObject     the object exists and belongs to somebody else
│   └── UndeclaredKind    a descendant's kind is missing from `owns`
├── InvalidObject         the object does not fit its declared schema; names the field
└── ApiError              the API server, or the way to it, said no (bonny.client.errors splits it)
"""

from __future__ import annotations

import math
from typing import Final

__all__ = [
    "ALSO",
    "AlreadyApplied",
    "ApiError",
    "BonnyError",
    "ForeignObject",
    "InvalidObject",
    "OptionError",
    "Retry",
    "StepError",
    "Terminal",
    "UndeclaredKind",
    "UsageError",
]


ALSO: Final = "also: "
"""Notes of errors that begin so are part of what an object's status and events say; others are for the log alone."""


class BonnyError(Exception):
    """Root of everything that this runtime raises on purpose."""


class UsageError(BonnyError):
    """A person gave something that cannot work: an answer, a flag, a kubeconfig, an environment variable.

    Its text is one sentence: what is wrong, where, and what to do. Tasks and `python -m` print it and exit with 2.
    """


class OptionError(UsageError, ValueError):
    """An option of one of our classes has an impossible value."""


class Retry(BonnyError):
    """Raised by a handler that wants another try; not counted as an error.

    `after` is in seconds; None (the default) leaves the wait to the key's backoff.
    """

    # Also for a subclass whose `__init__` does not call this one.
    after: float | None = None

    def __init__(self, message: str = "", *, after: float | None = None) -> None:
        super().__init__(message or "the handler asked for another try")
        if after is not None and not 0 <= after < math.inf:
            raise OptionError(f"Retry(after={after}): use 0 or more seconds, or leave it out for the key's backoff")
        self.after = None if after is None else float(after)


class Terminal(BonnyError):
    """Raised by a handler for which trying again is pointless until the object or a child changes."""


class AlreadyApplied(BonnyError):
    """A handler or step changed descendants, status or events that were already sent to the API server."""


class StepError(BonnyError):
    """A pipeline step failed. `step` is its name, `cause` (also `__cause__`) what it raised."""

    def __init__(self, message: str, *, step: str = "") -> None:
        super().__init__(message)
        self.step = step


class ForeignObject(StepError):
    """A descendant's name is taken by an object that does not carry our owner's UID; nothing was changed."""


class UndeclaredKind(StepError):
    """A handler registered a descendant of a kind that its controller does not declare in `owns`."""


class InvalidObject(BonnyError):
    """An object does not fit its declared schema. The text names the field, never its content."""


class ApiError(BonnyError):
    """The API server, or the way to it, did not do what was asked. `bonny.client.errors` holds the subclasses."""
