"""Errors of requests to the API server; classes differ by what the caller does next.

ApiError
├── Unreachable      no answer: refused, reset, timed out; the request may or may not have been carried out
│   └── AnswerTooLarge   an answer that is longer than the caller takes
├── NotLeading       another replica may lead: nothing was sent; stop
├── Unauthorized     401: the server does not accept who we are
├── Forbidden        403: a permission is missing; the message prints the rule to add
├── NotFound         404 of the API server: the object or its namespace does not exist
├── NotServed        404 without a reason: the kind is not served, for now or by whoever answered; nothing is known
├── Conflict         409, 422 of a failed precondition: somebody was faster; read again
├── Invalid          400, 422: the object does not fit its schema; trying the same again is pointless
├── Throttled        429: come back after `retry_after` seconds
└── ServerError      5xx and everything else: try again later
"""

from __future__ import annotations

import re
from typing import Final

from ..core.objects import Failure
from ..errors import ApiError

__all__ = [
    "AnswerTooLarge",
    "Conflict",
    "Forbidden",
    "Invalid",
    "NotFound",
    "NotLeading",
    "NotServed",
    "Refusal",
    "ServerError",
    "Throttled",
    "Unauthorized",
    "Unreachable",
    "missing_rule",
    "refusal",
]


class Unreachable(ApiError):
    """No complete answer came. What was asked for may have happened all the same."""


class AnswerTooLarge(Unreachable):
    """The answer is longer than the caller takes; the rest of it was not read."""


class NotLeading(ApiError):
    """Another replica may lead (`bonny.leader`). Nothing was sent."""


class Refusal(ApiError):
    """The API server answered, and not with success.

    `verb` and `resource` say what was asked for (`apply`, `configmaps default/w1`), `status`, `reason` and `message`
    are the server's, `retry_after` is in seconds where the server named a time.
    """

    then = "see the server's message"

    def __init__(self, *, verb: str, resource: str, failure: Failure) -> None:
        self.verb = verb
        self.resource = resource
        self.status = failure.code
        self.reason = failure.reason
        self.message = failure.message
        self.retry_after = failure.retry_after
        super().__init__(f"cannot {verb} {resource} ({failure.code}): {failure.message or failure.reason or self.then}")


class Unauthorized(Refusal):
    """401."""


class Forbidden(Refusal):
    """403."""


class NotFound(Refusal):
    """404, and the API server says that it looked."""


class NotServed(Refusal):
    """404 of something that knows no such path: a missing CRD, an API server that starts, a proxy."""

    then = "nothing is served there"


class Conflict(Refusal):
    """409, or a precondition that did not hold."""


class Invalid(Refusal):
    """400 or 422."""


class Throttled(Refusal):
    """429."""


class ServerError(Refusal):
    """5xx, and whatever has no class of its own."""


_CLASSES: Final[dict[int, type[Refusal]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: Invalid,
    429: Throttled,
}


# How the API server quotes what it refuses (apimachinery, field errors; structured-merge-diff, typed conversion).
_QUOTED: Final = re.compile(r'(?<=value: )("(?:[^"\\]|\\.)*"|[^:]+)|(?<= got ).*$', re.DOTALL)
HIDDEN: Final = "(left out)"


def without_values(message: str) -> str:
    """A message of the API server without the values that it quotes: they may be anybody's secrets."""
    return _QUOTED.sub(HIDDEN, message)


def refusal(failure: Failure, *, verb: str, resource: str) -> Refusal:
    """The error of the class that fits. What it says holds no values of objects, and of Secrets nothing at all."""
    message = without_values(failure.message)
    if resource.startswith("secrets ") or resource == "secrets":
        message = "the server's message may quote the Secret and is left out"
    failure = Failure(failure.code, failure.reason, message, failure.retry_after)
    kind = _CLASSES.get(failure.code, ServerError)
    if kind is NotFound and failure.reason != "NotFound":
        kind = NotServed
    return kind(verb=verb, resource=resource, failure=failure)


def missing_rule(*, group: str, plural: str, verbs: tuple[str, ...]) -> str:
    """The RBAC rule that would allow it, as one line of YAML to paste into a Role or ClusterRole."""
    return f'- {{apiGroups: ["{group}"], resources: ["{plural}"], verbs: [{", ".join(verbs)}]}}'
