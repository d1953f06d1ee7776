"""Review: one write that the API server asks about, and what a handler may answer.

You need it in the methods of an `Admission`. For unit tests `bonny_dev.testing.review` makes one.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from ..api.version import HasSpec, Version
from ..client.api import Client
from ..errors import BonnyError, InvalidObject
from ..resource import Resource

API_VERSION: Final = "admission.k8s.io/v1"

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]

V_co = TypeVar("V_co", covariant=True)
S = TypeVar("S")


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
    """Group, version and kind of the object under review."""

    group: str
    version: str
    kind: str


class AdmissionRequest(msgspec.Struct, rename="camel"):
    """The part of an AdmissionReview that is read, as `k8s.io/api/admission/v1` describes it."""

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
    request: AdmissionRequest


class Denied(BonnyError):
    """Raised by `validate` to refuse a write: `Denied("must be even", field="spec.size")`.

    The user reads it as an error of the schema: `* spec.size: Invalid value: must be even`. Use `review.deny` to report
    several at once. `forbidden` is for rules about who asks, instead of what is written: 403 in place of 422.
    """

    def __init__(self, message: str, *, field: str = "", forbidden: bool = False) -> None:
        super().__init__(message)
        # An answer that cannot be read would allow the write, where the failure policy is Ignore.
        self.message, self.field = (str(text).encode(errors="replace").decode() for text in (message, field))
        self.forbidden = forbidden


class Review(Generic[V_co]):
    """One write. `default` may change `spec` and `resource`; nothing else that is changed has an effect."""

    def __init__(self, request: AdmissionRequest, version: type[Version] | None, client: Client | None = None) -> None:
        self.operation: Operation = request.operation

        self.resource: Resource = (request.old_object if request.operation == "DELETE" else request.object) or {}
        """The object as it is to be stored, converted to the version of the `Admission`; for DELETE, as it is stored.
        `default` may change labels, annotations and fields beside spec here. On CREATE it may lack a name."""

        self.old: Resource | None = request.old_object
        """The object as it is stored, for UPDATE and DELETE. Changes have no effect."""

        self.user: User = request.user_info
        self.name: str = request.name
        """Empty on CREATE with `generateName`."""

        self.namespace: str = request.namespace
        """Empty for cluster-scoped kinds."""

        self.subresource: str = request.sub_resource
        """For example `status`; empty for a write of the object itself."""

        self.dry_run: bool = bool(request.dry_run)
        """Whether the write is only tried."""

        self.warnings: list[str] = []
        self.notes: dict[str, str] = {}
        """Annotations for the audit log."""

        self.denials: list[Denied] = []
        # For the patch: the class of `spec`, what `spec` returned, and the error that it raised.
        self.version: type[Version] | None = version
        self.given_spec: Any = None
        self.misfit: InvalidObject | None = None
        self._client = client
        self._old_spec: Any = None

    @property
    def spec(self: Review[HasSpec[S]]) -> S:
        """The typed spec of `resource`; `default` changes its fields. For kinds without a version class, the mapping.

        Raises: `InvalidObject` for a spec that does not fit the class. `default` sees such objects, because the API
        server checks the schema afterwards; leave that error to the runtime, which passes the object on unchanged.
        """
        if self.given_spec is None:
            try:
                self.given_spec = self._read(self.resource)
            except InvalidObject as error:
                self.misfit = error
                raise
        return cast("S", self.given_spec)

    @property
    def old_spec(self: Review[HasSpec[S]]) -> S:
        """The typed spec of `old`. Raises: as `spec`; `LookupError` for CREATE."""
        if self.old is None:
            raise LookupError("a write that creates an object has no old object: check `review.old is None` first")
        if self._old_spec is None:
            self._old_spec = self._read(self.old)
        return cast("S", self._old_spec)

    @property
    def client(self) -> Client:
        """Requests to the API server: reads, for rules that depend on other objects. RBAC: `Admission.rules`.

        Each read delays the write. Raises: `LookupError` without a connection to the API server.
        """
        if self._client is None:
            raise LookupError("this review has no connection to the API server")
        return self._client

    def deny(self, message: str, *, field: str = "", forbidden: bool = False) -> None:
        """Refuse the write, and go on: the user reads all refusals at once. The arguments are as in `Denied`."""
        self.denials.append(Denied(message, field=field, forbidden=forbidden))

    def warn(self, message: str) -> None:
        """Show a warning to the user, whether the write is allowed or not. 256 characters are always shown."""
        # The API server drops a warning with a control character.
        self.warnings.append("".join(each if each.isprintable() else " " for each in message))

    def note(self, key: str, value: str) -> None:
        """Add an annotation to the entry in the audit log: its key becomes `<webhook>/<key>`.

        The API server leaves out a key of other characters than letters, digits, `-`, `_` and `.`, or of more than 63.
        """
        self.notes[key] = str(value)

    def _read(self, resource: Resource) -> Any:
        return resource.get("spec", {}) if self.version is None else self.version.spec_of(resource)


def read(body: bytes) -> AdmissionRequest:
    """The request in an AdmissionReview, with the object that its operation is about. Raises: `NotAReview`."""
    try:
        review = msgspec.json.decode(body, type=_AdmissionReview)
    except (msgspec.MsgspecError, RecursionError):
        raise NotAReview(f"the body is not an AdmissionReview of {API_VERSION}") from None
    request = review.request
    if (request.old_object if request.operation == "DELETE" else request.object) is None:
        raise NotAReview(f"a review of {request.operation} needs an object")
    return request
