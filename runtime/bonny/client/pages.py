"""Pages: reads all objects of a kind page by page.

You need it to iterate over a kind of any size: memory holds one page. `Client.list` collects all objects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec

from ..core.objects import UNREADABLE, Failure, Page, decode_failure, decode_page
from ..core.watch import LIST_PAGE, PAGE_BYTES, SMALLER
from ..kinds import Kind
from .errors import AnswerTooLarge, refusal
from .request import ApiRequest, path_of, retry_after
from .transport import Answer

# Media types that request only the metadata of objects.
AS_METADATA: Final = {
    "list": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "watch": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
}


class Exchanges(Protocol):
    """A `Client`."""

    async def exchange(self, request: ApiRequest, /) -> Answer:
        """Send one request and return its answer."""


async def pages(client: Exchanges, kind: Kind, *, namespace: str | None = None) -> AsyncIterator[Page]:
    """The objects of `kind`, page by page: in its namespace, else in `namespace` (None: all), by its selectors.

    Guarantees: every object that exists all the time is returned, however long the reader takes for a page: when the
    version of the list expires on the server, the list continues after the last page with the newest state. A page has
    at most 500 objects and 8 MiB, or one object.
    Raises: the `ApiError`s of a request. RBAC: list.
    """
    limit, token, expired = LIST_PAGE, "", False
    while True:
        bound = PAGE_BYTES if limit > 1 else None
        request = page_request(kind, kind.namespace or namespace, limit=limit, token=token, limit_bytes=bound)
        try:
            answer = await client.exchange(request)
        except AnswerTooLarge:
            limit = max(limit // SMALLER, 1)
            continue
        if answer.status == 410 and not expired and (token := _token_of_expired(answer.body)):
            expired = True
            continue
        page = _page(answer, kind)
        yield page
        if not page.continue_token:
            return
        if page.continue_token == token:
            raise refusal(Failure(502, "", "the pages go in a circle"), verb="list", resource=kind.resource)
        token, expired = page.continue_token, False


def page_request(
    kind: Kind, namespace: str | None, *, limit: int, token: str, limit_bytes: int | None = None
) -> ApiRequest:
    """The request for the page of a list that `token` continues; an empty token requests the first page."""
    query = {"labelSelector": kind.label_selector, "fieldSelector": kind.field_selector}
    headers = {"Accept": AS_METADATA["list"]} if kind.metadata_only else {}
    query |= {"limit": str(limit), "continue": token}
    return ApiRequest("GET", path_of(kind, namespace), query, headers, limit_bytes=limit_bytes)


def _page(answer: Answer, kind: Kind) -> Page:
    failure = decode_failure(answer.status, answer.body, retry_after(answer.headers))
    if answer.status == 200:
        try:
            return decode_page(answer.body)
        except UNREADABLE:
            failure = Failure(502, "", "the answer is not a list")
    raise refusal(failure, verb="list", resource=kind.resource)


class _Expired(msgspec.Struct):
    metadata: dict[str, str] = {}


def _token_of_expired(body: bytes) -> str:
    """The token that continues an expired list (API concepts, "Retrieving large results sets in chunks")."""
    try:
        return msgspec.json.decode(body, type=_Expired).metadata.get("continue", "")
    except UNREADABLE:
        return ""
