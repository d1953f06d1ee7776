"""Response: the AdmissionReview that answers a request, made of what a handler left in its `Review`."""

from __future__ import annotations

from typing import Any

import msgspec

from ..resource import Resource
from .request import API_VERSION, Request
from .review import Denied, Review


def response(request: Request, review: Review[Any], operations: list[Resource]) -> bytes:
    """Refuses the write if `review` has denials, else allows it with the JSON patch `operations`."""
    answer: Resource = {"uid": request.uid, "allowed": not review.denials}
    if review.denials:
        answer["status"] = _status(request, review.denials)
    elif operations:
        answer |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(operations)}  # bytes become base64
    answer |= {"warnings": review.warnings, "auditAnnotations": review.notes}
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
