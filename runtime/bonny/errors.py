"""The errors of this runtime, as one tree; there is a class for each different reaction of the caller.

BonnyError
├── UsageError            wrong input from a person: one sentence, exit code 2
│   └── OptionError       a wrong option of one of our classes
├── Retry                 raised by handlers: try again later, not an error
│   └── Throttled         the same for all objects of the controller
├── Wait                  raised by handlers: something else has to happen first, not an error
├── Terminal              raised by handlers: stop until something changes
├── AlreadyApplied        a handler changed descendants, status or events after they were sent
├── ForeignObject         a descendant's name belongs to an object of another owner
├── UndeclaredKind        a descendant's kind is missing from `owns`
├── InvalidObject         the object does not fit its declared schema; has the path of the field
└── ApiError              a request to the API server failed (subclasses: bonny.client.errors)
"""

from __future__ import annotations

import math
from typing import Final

ALSO: Final = "also: "
"""Exception notes with this prefix are copied into status and events; other notes are only logged."""

ADVICE: Final = "advice: "
"""Exception notes with this prefix are copied into status, not into events: they are for the operator's author."""


class BonnyError(Exception):
    """Base class of all errors that this runtime raises on purpose."""


class UsageError(BonnyError):
    """Wrong input from a person: an answer, a flag, a kubeconfig, an environment variable.

    Its text is one sentence: the mistake, its location, and the fix. Tasks and `python -m` print it and exit with 2.
    """


class OptionError(UsageError, ValueError):
    """An option of one of our classes has an invalid value."""


class Retry(BonnyError):
    """Raised by a handler to run again; not counted as an error.

    Descendants are not applied: use `Wait` for something that has to happen first.
    `after` is in seconds. Default None: the key's backoff.
    """

    # A class attribute, for subclasses whose `__init__` does not call this one.
    after: float | None = None

    def __init__(self, message: str = "", *, after: float | None = None) -> None:
        super().__init__(message or "the handler requested a retry")
        if after is not None and not 0 <= after < math.inf:
            raise OptionError(f"{type(self).__name__}(after={after}): use 0 or more seconds, or None for the backoff")
        self.after = None if after is None else float(after)


class Throttled(Retry):
    """Raised by a handler when an external system requires fewer requests, as an HTTP API does with status 429.

    As `Retry`, and for `after` seconds, at most 300, no object of this controller or watcher is reconciled: changes and
    deletions wait, too. Reconciles in progress continue. Other controllers, the probes and the lease are not affected.
    If several objects raise it, the pause that ends last counts.
    """

    def __init__(self, message: str = "an external system throttles requests", *, after: float) -> None:
        super().__init__(message, after=after)


class Wait(BonnyError):
    """Raised by a handler when something else has to happen first, as in `Wait("the database is starting")`.

    All that was registered so far is applied, and nothing is pruned. The condition `Reconciled` is False with the
    reason `Waiting` and this message. A change of the object, a child or a related object runs the handler again, and
    so does the time `after`, in seconds. Default None: only a change. There is no backoff, and it is not counted as an
    error. In `finalize` it keeps the finalizer; in `delete` it means `Retry`. docs/concepts.md compares all outcomes.
    """

    # A class attribute, as that of `Retry`.
    after: float | None = None

    def __init__(self, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        if after is not None and not 0 < after < math.inf:
            raise OptionError(f"Wait(after={after}): use more than 0 seconds, or leave it out to wait for a change")
        self.after = None if after is None else float(after)


class Terminal(BonnyError):
    """Raised by a handler to stop retrying until the object, a child or a related object changes."""


class AlreadyApplied(BonnyError):
    """A handler or step changed descendants, status or events after they were sent to the API server."""


class ForeignObject(BonnyError):
    """An object with the descendant's name exists and does not carry our owner's UID; nothing was changed."""


class UndeclaredKind(BonnyError):
    """A handler registered a descendant of a kind that is missing from the controller's `owns`."""


class InvalidObject(BonnyError):
    """An object does not fit its declared schema. The text has the path of the field, never its content."""


class ApiError(BonnyError):
    """A request to the API server failed. `bonny.client` has the subclasses: `from bonny.client import NotFound`."""
