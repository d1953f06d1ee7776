"""Request: the part of an AdmissionReview that the API server sends, as `k8s.io/api/admission/v1` describes it."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from ..api.policies import Operation
from ..errors import BonnyError

API_VERSION: Final = "admission.k8s.io/v1"


class NotAReview(BonnyError):
    """The body is not a review that can be answered. The text quotes nothing of it."""


class User(msgspec.Struct, frozen=True, rename={"name": "username"}):
    """The sender of a write, as the API server authenticated it."""

    name: str = ""
    """`jane`, or `system:serviceaccount:NAMESPACE:NAME`."""

    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    """Values that the authenticator adds."""


class ObjectKind(msgspec.Struct):
    group: str
    version: str
    kind: str


class Request(msgspec.Struct, rename="camel"):
    uid: str
    kind: ObjectKind
    operation: Operation
    user_info: User
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None


class _AdmissionReview(msgspec.Struct, rename="camel"):
    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: Request


def read(body: bytes) -> Request:
    """The request in an AdmissionReview, with the object that its operation is about. Raises: `NotAReview`."""
    try:
        review = msgspec.json.decode(body, type=_AdmissionReview)
    except (msgspec.MsgspecError, RecursionError):
        raise NotAReview(f"the body is not an AdmissionReview of {API_VERSION}") from None
    request = review.request
    if (request.old_object if request.operation == "DELETE" else request.object) is None:
        raise NotAReview(f"a review of {request.operation} needs an object")
    return request
