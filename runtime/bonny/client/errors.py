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
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

import msgspec

from ..calling import text_of
from ..core.objects import Cause, Failure
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
MISSING_RULE: Final = "; missing rule: "
JUDGED: Final = (400, 403, 409, 422, 500)
"""The answers that a dry run would give again: the object is refused, not the moment or the caller."""
CAUSES_SHOWN: Final = 8
# A refusal repeats values of megabytes: so many bytes of each text, and so many causes, are looked at.
MOST_TEXT: Final = 4096
MOST_CAUSES: Final = 100


# The API server's own texts, made of constants, NAMEs and amounts, one a line: of RBAC, and where a reason says too
# little. The text of a policy or a webhook is left out, except for its name: it may contain any value.
_MESSAGES: Final = r"""
User "[^"]+" cannot \w+ resource "NAME" in API group "[\w.-]*"(?: in the namespace "NAME"| at the cluster scope)?
must have cluster-admin privileges to use the aggregationRule$
(?:object is being deleted: )?NAME "NAME" (?:not found|already exists)$
Operation cannot be fulfilled on NAME "NAME": the (?:object has been modified|\w+ in the precondition \(NAME\)).*$
exceeded quota: NAME requested: NAME used: NAME limited: NAME|failed quota: NAME must specify [\w./,;: -]+
\[?(?:(?:, )?m(?:ax|in)imum \S+ usage per \w+ is [\w.]+(?:, but \w+ is [\w.]+|\. +No \w+ is specified))+]?
unable to create new content in namespace NAME because it is being terminated
ValidatingAdmissionPolicy 'NAME' with binding 'NAME' denied request
admission webhook "NAME" denied the request|Internal error occurred: failed calling webhook "NAME"
(?:would )?violates? PodSecurity "NAME": .*$|CustomResourceDefinition.apiextensions.k8s.io "NAME" is invalid: [\s\S]*$
etcdserver: [a-z ,]+$|rpc error: code = \w+ desc = trying to send message [a-z \d(.)]+$|the answer is not JSON$
NAME NAME is deprecated(?: in NAME(?: unavailable in NAME)?)?(?:;? use NAME NAME)?|unknown field "NAME"$
"""
# How the API server says that a field cannot be changed, or who owns it; and that it cannot read a value, of which it
# names no field.
_PHRASES: Final = r"""
field is immutable(?: when `immutable` is set)?|may not change once set|cannot change roleRef
updates to \w+ spec for fields other than [a-zA-Z', ]+ are forbidden
pod updates may not change fields other than(?:[ ,]`[\w.\[\]*]+`)*
conflict with "[^"]+"(?: with subresource "\w+")?(?: using [\w/.]+)?
cannot unmarshal \w+ into Go struct field [\w.]+ of type [\w.]+|illegal base64 data at input byte \d+
quantities must match the regular expression
"""


# Both from the first word on: a policy and a webhook may write the same words in their texts.
_DENIED: Final = re.compile(
    r'(?:[^\s"]+ (?:"[^\s"]+" )?is forbidden: )?User "[^"]+" cannot (\w+) resource "([^\s"]+)" in API group '
    r'"([\w.-]*)"',
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


def _any_of(lines: str) -> str:
    return "|".join(lines.strip().splitlines()).replace("NAME", r"[^\s\"']+")


_MESSAGE: Final = re.compile(_any_of(rf'(?:NAME (?:"NAME" )?is forbidden: )?(?:{_any_of(_MESSAGES)})'), re.ASCII)
_PHRASE: Final = re.compile(_any_of(_PHRASES), re.ASCII)
# How server-side apply reports a field that does not fit its schema: by a 500, without causes (tried, 1.36).
_UNTYPED: Final = re.compile(
    r"(?:^[ \t]*|Kind=\w+\): )(\.(?:[\w./$-]|\[[\w=\",.-]*\])+): (expected [a-z]+|field not declared in schema|"
    r"duplicate entries for key \[[\w=\",.-]*\]|element \d+: associative list with keys)",
    re.ASCII | re.MULTILINE,
)
# The keys of items in a path. A `name` is needed to find the item; any other key may be a value.
# One without an end goes to the end of the text: otherwise its end would be searched for from each quote in it.
_KEY: Final = re.compile(r'(\[name="[\w.-]*")|"[^"\\]*(?:\\.[^"\\]*)*"?', re.ASCII)
_FIRST_KEY: Final = re.compile(r'[\["]')
# Invalid objects that are answered with a 500.
_UNFIT: Final = re.compile(
    "failed to (?:create typed patch|convert new) object|etcdserver: .* too large|.* larger than max"
)


def _without_keys(path: str) -> str:
    """A longer path ends before its first key: a part of a key may be a part of a secret."""
    if len(path) > MOST_TEXT:
        path = _FIRST_KEY.split(path[:MOST_TEXT], maxsplit=1)[0]
    return _KEY.sub(lambda key: key[1] or "...", path)


def without_values(message: str, causes: Sequence[Cause] = ()) -> str:
    """The parts of the API server's text without values of objects, which may be secret."""
    if escalation := _ESCALATION.match(message):
        return f"{escalation[1]}{escalation[2]}"
    if whole := _MESSAGE.match(message):
        return message if whole[0] == message else f"{whole[0]}; {LEFT_OUT}"
    errors: list[tuple[str, str]] = [
        (f"{_without_keys(cause.field)}: {cause.reason.removeprefix('FieldValue')}", phrase[0] if phrase else "")
        for cause in causes[:MOST_CAUSES]
        if cause.reason and cause.field not in ("", "<nil>")
        for phrase in (_PHRASE.search(cause.message[:MOST_TEXT]),)
    ]
    message = message[:MOST_TEXT]
    errors = errors or _UNTYPED.findall(_without_keys(message))
    if not errors and (phrase := _PHRASE.search(message)):
        errors = [("", phrase[0])]
    texts = list(dict.fromkeys(": ".join(filter(None, parts)) for parts in errors))
    if len(texts) > CAUSES_SHOWN:
        texts[CAUSES_SHOWN:] = [f"{len(texts) - CAUSES_SHOWN} more"]
    return "; ".join(texts if errors and all(phrase for _, phrase in errors) else [*texts, LEFT_OUT])


def _missing_rules(message: str) -> list[dict[str, list[str]]]:
    """The rules that RBAC misses, as a Role writes them; one for all resources that need the same."""
    if denied := _DENIED.match(message):
        return [{"apiGroups": [denied[3]], "resources": [denied[2]], "verbs": [denied[1]]}]
    merged: dict[str, dict[str, list[str]]] = {}
    if escalation := _ESCALATION.match(message):
        for line in _RULE.findall(message[escalation.end() :][:MOST_TEXT]):
            rule = {name[0].lower() + name[1:]: _WORD.findall(words) for name, words in _KEY_OF_RULE.findall(line)}
            rule = {"apiGroups" if name == "aPIGroups" else name: words for name, words in rule.items()}
            others = {name: words for name, words in rule.items() if name != "resources"}
            merged.setdefault(str(others), {**rule, "resources": []})["resources"] += rule.get("resources", ())
    return [{name: words for name, words in rule.items() if words} for rule in merged.values()]


shows_values: Final[ContextVar[bool]] = ContextVar("shows_values", default=False)
"""Whether errors keep values of objects, for log lines: only where a developer runs the operator at a terminal."""


def refusal(failure: Failure, *, verb: str, resource: str) -> Refusal:
    """The error for a failed request, without values of objects in its text.

    The answer to a read is not changed, except for Secrets: no object was sent that it could quote.
    """
    message, kind = failure.message, CLASSES.get(failure.code, ServerError)
    if failure.code == 500 and _UNFIT.match(message):
        kind = Invalid
    if kind is NotFound and failure.reason != "NotFound":
        kind = NotServed
    if message and (verb not in READS or resource.partition(" ")[0] == "secrets"):
        message = without_values(message, failure.causes)
        if message == LEFT_OUT and failure.code not in JUDGED:
            message = failure.reason or kind.default_message
    error = kind(verb=verb, resource=resource, failure=msgspec.structs.replace(failure, message=message))
    if kind is Forbidden and (rules := _missing_rules(failure.message)):
        error.args = (f"{error}{MISSING_RULE}{', '.join(map(json.dumps, rules))}",)
    if shows_values.get():
        error.whole_message = failure.message
    return error


def log_text_of(error: BaseException) -> str:
    """The text of `error` with its notes, for the log."""
    text = text_of(error, notes="")
    return text.replace(error.message, error.whole_message) if isinstance(error, Refusal) and error.message else text


def missing_rule(*, group: str, plural: str, verbs: tuple[str, ...]) -> str:
    """The missing RBAC rule, as one line of YAML for a Role or ClusterRole."""
    return f'- {{apiGroups: ["{group}"], resources: ["{plural}"], verbs: [{", ".join(verbs)}]}}'
