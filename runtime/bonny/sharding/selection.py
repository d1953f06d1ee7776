"""Selection: lists and watches of the objects in this replica's buckets alone.

Children carry a label with one of 64 numbers, the first bits of the hash of their owner's UID; a bucket is a group of
these, so the label never changes. Handled objects are selected by ranges of the hash (`shardSelector`). A server
without that feature ignores the parameter and sends all objects, so the stores filter in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from ..client.api import Client
from ..client.request import ApiRequest
from ..client.transport import Answer, StreamAnswer
from .assignment import BITS

BUCKET: Final = "bonny.dev/bucket"
"""The label of children; `Sharding.buckets` groups its values."""

VALUES: Final = 64
# The message of a server that has the feature, and another syntax of it.
REFUSAL: Final = b"invalid shard selector"


def by_label(buckets: Iterable[int], of: int) -> dict[str, str]:
    """The selection of children of these buckets."""
    wide = VALUES // of
    values = [str(value) for bucket in sorted(buckets) for value in range(bucket * wide, (bucket + 1) * wide)]
    return {"labelSelector": f"{BUCKET} in ({','.join(values) or 'none'})"}


def by_range(buckets: Iterable[int], of: int) -> dict[str, str]:
    """The selection of handled objects of these buckets; without any, a range that is practically empty."""
    wide, chosen = 2**BITS // of, set(buckets)
    begins = [bucket * wide for bucket in sorted(chosen) if bucket - 1 not in chosen] or [0]
    ends = [(bucket + 1) * wide for bucket in sorted(chosen) if bucket + 1 not in chosen] or [1]
    return {"shardSelector": " || ".join(map(shard_range, begins, ends))}


def shard_range(begin: int, end: int) -> str:
    """One range of the hash of the UID, without its end."""
    return f"shardRange(object.metadata.uid, '{begin:#018x}', '{end:#018x}')"


class SelectingClient:
    """Stands for the client of one stream, and adds the selection to its requests."""

    def __init__(self, client: Client, select: Callable[[], Mapping[str, str]]) -> None:
        self._client, self._select = client, select
        self._refused = self._outdated = False
        self._reading: asyncio.Timeout | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def exchange(self, request: ApiRequest) -> Answer:
        """As `Client.exchange`; if the server refuses the selection, without it."""
        answer = await self._client.exchange(replace(request, query=self._selected(request.query)))
        if not self._refused and _refuses(answer.status, answer.body):
            self._refused = True
            return await self._client.exchange(request)
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncIterator[StreamAnswer]:
        """As `Client.stream`; `reselect` ends it. After a refusal of the selection the next one is without it."""
        self._outdated = False
        async with self._client.stream(path, query=self._selected(query), headers=headers) as answer:
            yield replace(answer, chunks=self._current(answer))

    def reselect(self) -> None:
        """End the open watch as a server would: it continues where it was, with the present selection."""
        self._outdated = True
        if self._reading is not None:
            self._reading.reschedule(0.0)

    async def _current(self, answer: StreamAnswer) -> AsyncIterator[bytes]:
        while not self._outdated:
            try:
                async with asyncio.timeout(None) as self._reading:
                    chunk = await anext(answer.chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not self._outdated:
                    raise
                return
            finally:
                self._reading = None
            self._refused |= _refuses(answer.status, chunk)
            yield chunk

    def _selected(self, query: Mapping[str, str]) -> Mapping[str, str]:
        more = {} if self._refused else self._select()
        return {**query, **{name: ",".join(filter(None, (query.get(name), text))) for name, text in more.items()}}


def _refuses(status: int, body: bytes) -> bool:
    return status == 500 and REFUSAL in body
