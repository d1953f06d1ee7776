"""Admission: sends one write to an admission webhook, without a server.

    reviewed = await testing.review(WidgetAdmission, widget(size=7))
    assert reviewed.causes == (("spec.size", "Invalid value: must be even"),)

The operator gets the bytes that the API server sends, and its answer is read as the API server reads it.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from bonny.errors import InvalidObject
from bonny.operator import Operator
from bonny.resource import Resource

from ..crd import check_object
from .answers import AnsweringClient, AnyAnswers

if TYPE_CHECKING:
    from bonny.webhooks import Admission
    from bonny.webhooks.review import Operation


@dataclass(slots=True)
class Reviewed:
    """The answer to a write."""

    resource: Resource
    """The object with the patch applied."""

    patch: list[Resource] = field(default_factory=list)
    """The operations of the JSON patch (RFC 6902) that `default` makes."""

    code: int = HTTPStatus.OK
    """200 for a write that is allowed; 422 for one that is refused, also by the schema; 403 for `forbidden`; 500 when a
    handler failed, with the traceback in the log."""

    message: str = ""
    """The error that the user reads, without its beginning."""

    causes: tuple[tuple[str, str], ...] = ()
    """The field and the text of each refusal."""

    warnings: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Annotations for the audit log."""

    @property
    def allowed(self) -> bool:
        """Whether the write was admitted."""
        return self.code == HTTPStatus.OK


async def review(
    admission: type[Admission[Any]],
    resource: Mapping[str, Any],
    *,
    old: Mapping[str, Any] | None = None,
    operation: Operation | None = None,
    user: str = "jane",
    groups: Iterable[str] = (),
    dry_run: bool = False,
    subresource: str = "",
    answers: AnyAnswers | None = None,
) -> Reviewed:
    """Ask `admission` about a write of `resource`: first `default`, then the schema, then `validate`.

    `old` is the stored object. `operation` is by default UPDATE with `old`, and CREATE without; for DELETE `resource`
    is the stored object. `answers` are those to the requests of `review.client`, see `bonny_dev.testing.answers`.
    Raises: `AssertionError` for a request without an answer, or one that the `rules` of `admission` do not allow.
    """
    # Loaded here: a repository may not carry the extra.
    from bonny.webhooks.app import WebhookApp  # noqa: PLC0415
    from bonny.webhooks.review import API_VERSION  # noqa: PLC0415

    reviewed = Reviewed(msgspec.to_builtins(resource))
    group, _, version = str(resource["apiVersion"]).rpartition("/")
    client = AnsweringClient(answers or {}, served=admission, group=group)
    operator = Operator(name="test", group=group or "example.com", controllers=[admission])
    app = WebhookApp(operator, client)
    request: Resource = {
        "uid": "test",
        "kind": {"group": group, "version": version, "kind": resource["kind"]},
        "operation": operation or ("CREATE" if old is None else "UPDATE"),
        "name": resource["metadata"].get("name", ""),
        "namespace": resource["metadata"].get("namespace", ""),
        "subResource": subresource,
        "userInfo": {"username": user, "groups": [*groups]},
        "oldObject": old,
        "dryRun": dry_run,
    }
    of_version = (
        None if subresource else admission.version_for(group, version, resource["kind"], default_group=operator.group)
    )
    for path, answer in app.routes.items():
        request["oldObject" if operation == "DELETE" else "object"] = reviewed.resource
        if path == admission.path("validate") and operation != "DELETE" and of_version is not None:
            try:
                request["object"] = check_object(of_version, reviewed.resource)
            except InvalidObject as error:
                reviewed.code, reviewed.message = HTTPStatus.UNPROCESSABLE_ENTITY, str(error)
                break
        sent = msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request})
        _read(await asyncio.create_task(answer(sent)), reviewed)
        client.check()
        if not reviewed.allowed:
            break
    return reviewed


def _read(answer: tuple[int, bytes], reviewed: Reviewed) -> None:
    """Add an answer to `reviewed`."""
    if answer[0] != HTTPStatus.OK:
        reviewed.code, reviewed.message = answer[0], answer[1].decode()
        return
    response = msgspec.json.decode(answer[1])["response"]
    status = response.get("status", {})
    reviewed.code, reviewed.message = status.get("code", HTTPStatus.OK), status.get("message", "")
    reviewed.causes = tuple((each["field"], each["message"]) for each in status.get("details", {}).get("causes", ()))
    reviewed.warnings += response.get("warnings", ())
    reviewed.notes |= response.get("auditAnnotations", {})
    if "patch" in response:
        reviewed.patch = msgspec.json.decode(b64decode(response["patch"]))
        reviewed.resource = _patched(reviewed.resource, reviewed.patch)


def _patched(resource: Resource, operations: Iterable[Resource]) -> Resource:
    """A copy of `resource` with the operations applied."""
    patched: Resource = msgspec.json.decode(msgspec.json.encode(resource))
    for operation in operations:
        place: Any = patched
        *parents, last = (name.replace("~1", "/").replace("~0", "~") for name in operation["path"].split("/")[1:])
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place[name]
        if operation["op"] == "remove":
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = operation["value"]
    return patched
