"""Wire: AdmissionReview of admission.k8s.io/v1, from bytes to a `Review`, and from what it says to bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final, Literal

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
    groups: tuple[str, ...] | None = None
    uid: str = ""
    extra: dict[str, tuple[str, ...]] | None = None


class Request(msgspec.Struct, rename="camel"):
    """AdmissionRequest of `k8s.io/api/admission/v1`."""

    uid: str
    kind: _Kind
    operation: Operation
    user_info: _User
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None

    def review(self, admission: type[Admission[Any]], client: Client | None) -> Review[Any]:
        """The review for a handler of `admission`. Its objects are those of this request."""
        user, resource = self.user_info, self.old_object if self.operation == "DELETE" else self.object
        return Review(
            operation=self.operation,
            resource=resource or {},
            old=self.old_object,
            version=admission.version_for(self.kind.kind, self.kind.version),
            user=User(user.username, user.groups or (), user.uid, user.extra or {}),
            name=self.name,
            namespace=self.namespace,
            subresource=self.sub_resource,
            dry_run=bool(self.dry_run),
            client=client,
        )


class _AdmissionReview(msgspec.Struct, rename="camel"):
    api_version: str
    kind: Literal["AdmissionReview"]
    request: Request


def read(body: bytes) -> Request:
    """Raises: `NotAReview`."""
    try:
        review = msgspec.json.decode(body, type=_AdmissionReview)
    except (msgspec.MsgspecError, RecursionError):
        raise NotAReview(f"the body is not an AdmissionReview of {API_VERSION}") from None
    request = review.request
    if review.api_version != API_VERSION:
        raise NotAReview(f"only reviews of {API_VERSION} are answered: name it in admissionReviewVersions")
    if (request.old_object if request.operation == "DELETE" else request.object) is None:
        raise NotAReview(f"a review of {request.operation} needs an object")
    return request


def written(request: Request, review: Review[Any], operations: list[Resource]) -> bytes:
    """The answer: refused if `review` has denials, else allowed with the JSON patch `operations`."""
    response: Resource = {"uid": request.uid, "allowed": not review.denials}
    if review.denials:
        response["status"] = _status(request, review.denials)
    elif operations:
        response |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(operations)}  # bytes become base64
    if warnings := list(_warnings(review.warnings)):
        response["warnings"] = warnings
    if notes := {name: value for key, value in review.notes.items() if (name := _note(key))}:
        response["auditAnnotations"] = notes
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _status(request: Request, denials: list[Denied]) -> Resource:
    """A Status that kubectl prints as it prints errors of the schema: a line for each of the causes."""
    kind = request.kind
    name = request.name or (request.object or {}).get("metadata", {}).get("name", "")
    if any(denied.forbidden for denied in denials):
        message = "; ".join(f"{denied.field}: {denied.message}".removeprefix(": ") for denied in denials)
        return {"code": HTTPStatus.FORBIDDEN, "reason": FORBIDDEN, "message": message}
    causes = [
        {"reason": "FieldValueInvalid", "field": denied.field or kind.kind, "message": _INVALID + denied.message}
        for denied in denials
    ]
    problems = "; ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
    message = f'{kind.kind} "{name}" is invalid: {problems}'
    details = {"group": kind.group, "kind": kind.kind, "name": name, "causes": causes}
    return {"code": HTTPStatus.UNPROCESSABLE_ENTITY, "reason": INVALID, "message": message, "details": details}


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
