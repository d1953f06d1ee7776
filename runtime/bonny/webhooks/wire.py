"""Wire: AdmissionReview of admission.k8s.io/v1, from bytes to a `Review`, and from what it says to bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..api.policies import Operation
from ..client.api import Client
from ..errors import BonnyError
from ..resource import Resource
from .admission import Admission
from .review import FORBIDDEN, INVALID, Denied, Review, User

API_VERSION: Final = "admission.k8s.io/v1"
# k8s.io/apiserver, pkg/endpoints/filters/warning.go: a longer warning may be cut, and all further ones are dropped.
WARNING_CHARACTERS: Final = 256
WARNINGS_CHARACTERS: Final = 4096
# k8s.io/apimachinery, pkg/util/validation: qualified names.
NOTE_CHARACTERS: Final = 63
_INVALID: Final = "Invalid value: "


class NotAReview(BonnyError):
    """The body is not a review that can be answered. The text quotes nothing of it."""


class _Kind(msgspec.Struct):
    group: str
    version: str
    kind: str


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = ()
    extra: dict[str, tuple[str, ...]] | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    kind: _Kind
    operation: Operation
    user_info: _User
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool | None = None


class _AdmissionReview(msgspec.Struct, rename="camel"):
    api_version: str
    kind: Literal["AdmissionReview"]
    request: _Request


_review: Final = msgspec.json.Decoder(_AdmissionReview).decode
_object: Final = msgspec.json.Decoder(dict[str, Any] | None).decode


class Asked(NamedTuple):
    """A review as it came."""

    uid: str
    kind: str
    group: str
    review: Review[Any]
    given: Resource
    """The object again, which no handler has changed."""


def read(body: bytes, admission: type[Admission[Any]], client: Client | None) -> Asked:
    """Raises: `NotAReview`."""
    try:
        asked = _review(body)
        request = asked.request
        new, old, given = _object(request.object), _object(request.old_object), _object(request.object)
    except (msgspec.MsgspecError, RecursionError):
        raise NotAReview(f"the body is not an AdmissionReview of {API_VERSION}") from None
    if asked.api_version != API_VERSION:
        raise NotAReview(f"only reviews of {API_VERSION} are answered: name it in admissionReviewVersions")
    resource = old if request.operation == "DELETE" else new
    if resource is None:
        raise NotAReview(f"a review of {request.operation} needs an object")
    user = request.user_info
    review: Review[Any] = Review(
        operation=request.operation,
        resource=resource,
        old=old,
        version=admission.version_for(request.kind.kind, request.kind.version),
        user=User(user.username, tuple(user.groups or ()), user.uid, user.extra or {}),
        name=request.name,
        namespace=request.namespace,
        subresource=request.sub_resource,
        dry_run=bool(request.dry_run),
        client=client,
    )
    return Asked(request.uid, request.kind.kind, request.kind.group, review, given or resource)


def written(asked: Asked, operations: list[Resource]) -> bytes:
    """The answer: refused if the review has denials, else allowed with the JSON patch `operations`."""
    review = asked.review
    response: Resource = {"uid": asked.uid, "allowed": not review.denials}
    if review.denials:
        response["status"] = _status(asked, review.denials)
    elif operations:
        response |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(operations)}  # bytes become base64
    if warnings := list(_warnings(review.warnings)):
        response["warnings"] = warnings
    if notes := {name: value for key, value in review.notes.items() if (name := _note(key))}:
        response["auditAnnotations"] = notes
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _status(asked: Asked, denials: list[Denied]) -> Resource:
    """A Status that kubectl prints as it prints errors of the schema: a line for each of the causes."""
    name = asked.review.name or asked.given.get("metadata", {}).get("name", "")
    if any(denied.forbidden for denied in denials):
        message = "; ".join(f"{denied.field}: {denied.message}".removeprefix(": ") for denied in denials)
        return {"code": HTTPStatus.FORBIDDEN, "reason": FORBIDDEN, "message": message}
    causes = [
        # kubectl prints no line without a field: a rule about the whole object is a rule about the kind.
        {
            "field": denied.field or asked.kind,
            "reason": "FieldValueInvalid",
            "message": f"Invalid value: {denied.message}",
        }
        for denied in denials
    ]
    problems = "; ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
    return {
        "code": HTTPStatus.UNPROCESSABLE_ENTITY,
        "reason": INVALID,
        "message": f'{asked.kind} "{name}" is invalid: {problems}',
        "details": {"group": asked.group, "kind": asked.kind, "name": name, "causes": causes},
    }


def _warnings(texts: Iterable[str]) -> Iterable[str]:
    """What the API server passes on: it drops a warning with a control character, and what is too much."""
    left = WARNINGS_CHARACTERS
    for text in dict.fromkeys(texts):
        shown = "".join(character if character.isprintable() else " " for character in text)[:WARNING_CHARACTERS]
        left -= len(shown)
        if shown and left >= 0:
            yield shown


def _note(key: str) -> str:
    """A valid key of an audit annotation; empty if nothing of `key` can stay."""
    return re.sub(r"[^-.\w]", "-", key, flags=re.ASCII)[:NOTE_CHARACTERS].strip("-._")
