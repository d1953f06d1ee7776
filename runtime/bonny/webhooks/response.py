"""Response: the AdmissionReview that answers a request, made of what a handler left in its `Review`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ..resource import Resource
from .request import API_VERSION, Request
from .review import Denied, Review

# k8s.io/apiserver, pkg/endpoints/filters/warning.go: a longer warning may be cut, and all further ones are dropped.
WARNING_CHARACTERS: Final = 256
WARNINGS_CHARACTERS: Final = 4096
# k8s.io/apimachinery, pkg/util/validation: qualified names.
NOTE_CHARACTERS: Final = 63


def response(request: Request, review: Review[Any], operations: list[Resource]) -> bytes:
    """Refuses the write if `review` has denials, else allows it with the JSON patch `operations`."""
    answer: Resource = {"uid": request.uid, "allowed": not review.denials}
    if review.denials:
        answer["status"] = _status(request, review.denials)
    elif operations:
        answer |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(operations)}  # bytes become base64
    answer["warnings"] = list(_warnings(review.warnings))
    answer["auditAnnotations"] = {name: value for key, value in review.notes.items() if (name := _note(key))}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": answer})


def _status(request: Request, denials: list[Denied]) -> Resource:
    """A Status that kubectl prints as it prints errors of the schema: a line for each of the causes."""
    if any(denied.forbidden for denied in denials):
        return {"code": 403, "reason": "Forbidden", "message": "; ".join(denied.message for denied in denials)}
    kind, name = request.kind.kind, request.name
    causes = [
        {"reason": "FieldValueInvalid", "field": denied.field or kind, "message": "Invalid value: " + denied.message}
        for denied in denials
    ]
    message = f'{kind} "{name}" is invalid: ' + "; ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
    details = {"group": request.kind.group, "kind": kind, "name": name, "causes": causes}
    return {"code": 422, "reason": "Invalid", "message": message, "details": details}


def _warnings(texts: Iterable[str]) -> Iterable[str]:
    """Texts that the API server passes on: it drops one with a control character, and all after too many."""
    left = WARNINGS_CHARACTERS
    for text in dict.fromkeys(texts):
        shown = "".join(character if character.isprintable() else " " for character in text)[:WARNING_CHARACTERS]
        left -= len(shown)
        if shown and left >= 0:
            yield shown


def _note(key: str) -> str:
    """A valid key of an audit annotation; empty if nothing of `key` can stay."""
    return re.sub(r"[^-.\w]", "-", key, flags=re.ASCII)[:NOTE_CHARACTERS].strip("-._")
