"""Errors of requests to the API server; there is a class for each different reaction of the caller.

ApiError
├── Unreachable      no answer: refused, reset, timed out; the request may or may not have been carried out
│   └── AnswerTooLarge   an answer that exceeds the caller's limit
├── NotLeading       another replica may lead: nothing was sent; stop
├── Unauthorized     401: the server does not accept our credentials
├── Forbidden        403: a permission is missing; the message has the rule to add
├── NotFound         404 of the API server: the object or its namespace does not exist
├── NotServed        404 without a reason: the kind is not served at the moment, or a proxy answered
├── Conflict         409, 422 of a failed precondition: another client was faster; read again
├── Invalid          400, 413, 422, some 500: the object is not valid; do not send it again
├── Throttled        429: try again after `retry_after` seconds
└── ServerError      5xx and everything else: try again later
"""

from __future__ import annotations

import json
import re
from contextvars import ContextVar
from typing import Final

import msgspec

from ..calling import text_of
from ..core.objects import LONGEST_MESSAGE, Cause, Failure
from ..errors import ApiError
from ..resource import printable


class Unreachable(ApiError):
    """No complete answer came. The request may have been carried out."""


class AnswerTooLarge(Unreachable):
    """The answer exceeds the caller's limit; the rest of it was not read."""


class NotLeading(ApiError):
    """Another replica may lead (`bonny.run.leader`). Nothing was sent."""


class Refusal(ApiError):
    """The API server answered with an error.

    `verb` and `resource` describe the request (`apply`, `configmaps default/w1`), `status` and `reason` are the
    server's, `message` is its text without values of objects, `whole_message` the same, or with them where a
    developer runs the operator (`shows_values`), `retry_after` is its advice in seconds, `causes` are its detailed
    reasons.
    """

    default_message = "without a reason"

    def __init__(self, *, verb: str, resource: str, failure: Failure) -> None:
        self.verb = verb
        self.resource = resource
        self.status = failure.code
        self.reason = failure.reason
        self.message = self.whole_message = printable(failure.message, kept="\n\t")
        self.retry_after = failure.retry_after
        self.causes = tuple(cause.reason for cause in failure.causes)
        super().__init__(
            f"cannot {verb} {resource} ({failure.code}): {self.message or failure.reason or self.default_message}"
        )


class Unauthorized(Refusal):
    """401."""


class Forbidden(Refusal):
    """403. Where RBAC refused the request, the text ends with the missing rule, as in `rules` of a controller."""


class NotFound(Refusal):
    """404 of the API server for a path that it serves."""


class NotServed(Refusal):
    """404 for an unknown path: a missing CRD, an API server that is starting, a proxy."""

    default_message = "nothing is served there"


class Conflict(Refusal):
    """409, or a failed precondition."""


class Invalid(Refusal):
    """400, 413 or 422."""


class Throttled(Refusal):
    """429."""


class ServerError(Refusal):
    """5xx, and every status without a class of its own."""


CLASSES: Final[dict[int, type[Refusal]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    429: Throttled,
}


READS: Final = ("get", "list", "watch")
LEFT_OUT: Final = "details that may quote the object are left out: `kubectl apply --dry-run=server` shows them"
IMMUTABLE: Final = "field is immutable"
MISSING_RULE: Final = "; missing rule: "
JUDGED: Final = (400, 403, 422, 500)
"""The answers that a dry run would give again: the object is refused, not the moment or the caller."""
CAUSES_SHOWN: Final = 8
# A refusal repeats values of megabytes: so many bytes of each text are looked at, and shown of each word.
MOST_TEXT: Final = 4096
LONGEST_WORD: Final = 256

# How the API server says that a field cannot be changed: the reason of the cause is Invalid or Forbidden.
_IMMUTABLE: Final = (IMMUTABLE, "may not change", "cannot change roleRef", "spec for fields other than")
# How an answer with status 500 begins if the object is not valid (tried, 1.36).
_UNFIT: Final = re.compile(
    "failed to (?:create typed patch|convert new) object|etcdserver: request is too large|"
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max"
)
# How RBAC refuses a request, from the first word on: texts of policies and webhooks may have the same words.
_DENIED: Final = re.compile(
    r'(?:[^\s"]+ (?:"[^\s"]+" )?is forbidden: )?User "[^"]+" cannot (\w+) resource "([^\s"]+)" in API group '
    r'"([\w.-]*)"(?: in the namespace "[^\s"]+"| at the cluster scope)?',
    re.ASCII,
)
# How RBAC refuses a Role, or a binding: it names the rules that the user does not have.
_ESCALATION: Final = re.compile(
    r'([^\s"]+ "[^\s"]+" is forbidden: user "[^"]+") \(groups=[^)]*\)( is attempting to grant RBAC permissions not '
    r"currently held):\n"
)
_RULE: Final = re.compile(r"^{(.*)}", re.MULTILINE)
_KEY_OF_RULE: Final = re.compile(r'(\w+):\[((?:"(?:[^"\\]|\\.)*" ?)*)\]')
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
# The keys of items in a path. A `name` is needed to find the item; any other key may be a value.
# One without an end goes to the end of the text: otherwise its end would be searched for from each quote in it.
_KEY: Final = re.compile(r'(\[name="[\w.-]*")|"[^"\\]*(?:\\.[^"\\]*)*"?', re.ASCII)


def _reason(text: str) -> str:
    """A reason is a constant, such as `FieldValueInvalid`; anything else is left out."""
    return text.removeprefix("FieldValue")[:LONGEST_WORD] if text.isalpha() else ""


def _told(cause: Cause) -> str:
    path = _KEY.sub(lambda key: key[1] or "...", cause.field[:MOST_TEXT])[:LONGEST_WORD]
    fixed = any(phrase in cause.message[:MOST_TEXT] for phrase in _IMMUTABLE)
    return ": ".join(filter(None, (path, _reason(cause.reason), IMMUTABLE if fixed else "")))


def without_values(failure: Failure) -> str:
    """The reasons and fields of a refusal; nothing else of it, because values of an object may be secret."""
    unfit = _UNFIT.match(failure.message)
    texts = [_told(cause) for cause in failure.causes[:CAUSES_SHOWN] if cause.field not in ("", "<nil>")]
    if len(failure.causes) > CAUSES_SHOWN:
        texts.append(f"{len(failure.causes) - CAUSES_SHOWN} more")
    texts = texts or [unfit[0] if unfit else _reason(failure.reason)]
    if failure.message and failure.code in JUDGED and not all(text.endswith(IMMUTABLE) for text in texts):
        texts.append(LEFT_OUT)
    return "; ".join(filter(None, texts))


def _of_rbac(message: str) -> tuple[str, list[dict[str, list[str]]]]:
    """A refusal by RBAC, and the rules that it misses as a Role writes them; none if RBAC did not refuse.

    It names users, resources and rules, never values of objects.
    """
    if denied := _DENIED.match(message):
        return denied[0], [{"apiGroups": [denied[3]], "resources": [denied[2]], "verbs": [denied[1]]}]
    escalation = _ESCALATION.match(message)
    if escalation is None:
        return "", []
    merged: dict[str, dict[str, list[str]]] = {}
    for line in _RULE.findall(message[escalation.end() :][:MOST_TEXT]):
        found = _KEY_OF_RULE.findall(line.replace("APIGroups:", "ApiGroups:", 1))
        rule = {name[0].lower() + name[1:]: _WORD.findall(words) for name, words in found}
        # One rule for all resources that need the same.
        others = {name: words for name, words in rule.items() if name != "resources"}
        merged.setdefault(str(others), {**rule, "resources": []})["resources"] += rule.get("resources", ())
    rules = [{name: words for name, words in rule.items() if words} for rule in merged.values()]
    return f"{escalation[1]}{escalation[2]}", rules


shows_values: Final[ContextVar[bool]] = ContextVar("shows_values", default=False)
"""Whether errors keep values of objects, for log lines: only where a developer runs the operator at a terminal."""


def refusal(failure: Failure, *, verb: str, resource: str) -> Refusal:
    """The error for a failed request, without values of objects in its text.

    The answer to a read is not changed, except for Secrets: no object was sent that it could quote.
    """
    kind = CLASSES.get(failure.code, ServerError)
    if failure.code == 500 and _UNFIT.match(failure.message):
        kind = Invalid
    if kind is NotFound and failure.reason != "NotFound":
        kind = NotServed
    text, rules = _of_rbac(failure.message[:LONGEST_MESSAGE]) if kind is Forbidden else ("", [])
    shown = failure
    if text or verb not in READS or resource.partition(" ")[0] == "secrets":
        message, reason = text or without_values(failure) or kind.default_message, _reason(failure.reason)
        shown = msgspec.structs.replace(failure, message=message, reason=reason)
    error = kind(verb=verb, resource=resource, failure=shown)
    if rules:
        error.args = (f"{error}{MISSING_RULE}{', '.join(map(json.dumps, rules))}",)
    elif shows_values.get():
        error.whole_message = failure.message
    return error


def log_text_of(error: BaseException) -> str:
    """The text of `error` with its notes, for the log."""
    text = text_of(error, notes="")
    return text.replace(error.message, error.whole_message) if isinstance(error, Refusal) and error.message else text


def missing_rule(*, group: str, plural: str, verbs: tuple[str, ...]) -> str:
    """The missing RBAC rule, as one line of YAML for a Role or ClusterRole."""
    return f'- {{apiGroups: ["{group}"], resources: ["{plural}"], verbs: [{", ".join(verbs)}]}}'
