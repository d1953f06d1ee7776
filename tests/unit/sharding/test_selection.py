"""Selection: the texts that select buckets, and the client that adds them to the requests of one stream."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.client.api import Client
from bonny.client.request import ApiRequest
from bonny.client.transport import Answer, StreamAnswer
from bonny.sharding.assignment import bucket_of, fnv1a64
from bonny.sharding.selection import BUCKET, REFUSAL, VALUES, SelectingClient, by_label, by_range

COUNTS = st.sampled_from([2, 4, 8, 16, 32, 64])
REFUSED = Answer(500, {}, b'{"message":"' + REFUSAL + b': x"}')
ALL = {"shardSelector": "all"}


@st.composite
def parts(draw: st.DrawFn) -> tuple[int, set[int]]:
    """A number of buckets, and some of them."""
    of = draw(COUNTS)
    return of, draw(st.sets(st.integers(0, of - 1)))


def ranges(text: str) -> list[tuple[int, int]]:
    """Begin and end of each range, in the syntax of the API server: `0x` and 16 digits; only 2**64 has one more."""
    found = []
    for each in text.split(" || "):
        match = re.fullmatch(
            r"shardRange\(object\.metadata\.uid, '0x([0-9a-f]{16})', '0x([0-9a-f]{16}|10{16})'\)", each
        )
        assert match is not None, each
        found.append((int(match[1], 16), int(match[2], 16)))
    return found


@given(parts(), st.uuids())
def test_the_ranges_contain_exactly_the_objects_of_the_buckets(part: tuple[int, set[int]], uid: object) -> None:
    of, buckets = part
    found = ranges(by_range(buckets, of)["shardSelector"])
    contained = any(begin <= fnv1a64(str(uid)) < end for begin, end in found)
    assert contained == (bucket_of(str(uid), of) in buckets)


@given(parts())
def test_neighbouring_buckets_are_one_range_and_ranges_do_not_touch(part: tuple[int, set[int]]) -> None:
    of, buckets = part
    found = ranges(by_range(buckets, of)["shardSelector"])
    assert all(end < begin for (_, end), (begin, _) in pairwise(found))
    assert sum(end - begin for begin, end in found) == (len(buckets) * 2**64 // of or 1)


@given(parts(), st.uuids())
def test_the_label_selects_exactly_the_values_of_the_buckets(part: tuple[int, set[int]], uid: object) -> None:
    of, buckets = part
    match = re.fullmatch(rf"{BUCKET} in \(([0-9a-z,]+)\)", by_label(buckets, of)["labelSelector"])
    assert match is not None
    assert (str(bucket_of(str(uid), VALUES)) in match[1].split(",")) == (bucket_of(str(uid), of) in buckets)


class Server:
    """Answers in turn, and notes the queries. A watch sends what is put into `lines`."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.queries: list[Mapping[str, str]] = []
        self.lines: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.user_agent = "as the client's"

    async def exchange(self, request: ApiRequest) -> Answer:
        self.queries.append(request.query)
        return self.answers.pop(0)

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncIterator[StreamAnswer]:
        self.queries.append(query)
        answer = self.answers.pop(0)
        yield StreamAnswer(answer.status, answer.headers, self._chunks(answer.body))

    async def _chunks(self, body: bytes) -> AsyncIterator[bytes]:
        if body:
            yield body
            return
        while True:
            line = await self.lines.get()
            if isinstance(line, Exception):
                raise line
            yield line


def selecting(server: Server, select: Callable[[], Mapping[str, str]] = lambda: ALL) -> SelectingClient:
    return SelectingClient(cast("Client", server), select)


def get(**query: str) -> ApiRequest:
    return ApiRequest("GET", "/", query)


def run(main: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(cast("Any", main()))


def test_the_selection_is_added_to_that_of_the_stream_and_everything_else_is_the_clients() -> None:
    async def main() -> None:
        server = Server(*[Answer(200, {}, b"{}")] * 2)
        client = selecting(server, lambda: {"labelSelector": "b in (1)"})
        await client.exchange(get(labelSelector="a=b", limit="500"))
        await client.exchange(get(labelSelector=""))
        assert server.queries == [{"labelSelector": "a=b,b in (1)", "limit": "500"}, {"labelSelector": "b in (1)"}]
        assert client.user_agent == "as the client's"

    run(main)


def test_a_list_whose_selection_is_refused_is_sent_without_it_and_so_is_everything_later() -> None:
    async def main() -> None:
        done = Answer(200, {}, b"{}")
        server = Server(REFUSED, done, done, Answer(200, {}, b""))
        client = selecting(server)
        assert await client.exchange(get(limit="1")) is done
        await client.exchange(get(limit="2"))
        async with client.stream("/", query={"watch": "true"}, headers={}):
            pass
        assert server.queries == [{"limit": "1", **ALL}, {"limit": "1"}, {"limit": "2"}, {"watch": "true"}]

    run(main)


@pytest.mark.parametrize("answer", [Answer(500, {}, b"etcd is away"), Answer(400, {}, REFUSED.body)])
def test_another_error_of_a_list_is_the_answer_and_the_selection_stays(answer: Answer) -> None:
    async def main() -> None:
        server = Server(answer, Answer(200, {}, b"{}"))
        client = selecting(server)
        assert await client.exchange(get()) is answer
        await client.exchange(get())
        assert server.queries == [ALL, ALL]

    run(main)


def test_a_watch_whose_selection_is_refused_fails_and_the_next_one_is_sent_without_it() -> None:
    """Regression: behind a load balancer one server accepted the list, and another refused each watch."""

    async def main() -> None:
        server = Server(REFUSED, Answer(200, {}, b""))
        client = selecting(server)
        async with client.stream("/", query={}, headers={}) as answer:
            assert answer.status == 500
            assert [chunk async for chunk in answer.chunks] == [REFUSED.body]
        async with client.stream("/", query={}, headers={}):
            pass
        assert server.queries == [ALL, {}]

    run(main)


def test_an_event_whose_text_is_that_of_a_refusal_changes_nothing() -> None:
    async def main() -> None:
        server = Server(Answer(200, {}, REFUSED.body), Answer(200, {}, b"{}"))
        client = selecting(server)
        async with client.stream("/", query={}, headers={}) as answer:
            assert [chunk async for chunk in answer.chunks] == [REFUSED.body]
        await client.exchange(get())
        assert server.queries == [ALL, ALL]

    run(main)


def test_a_watch_ends_without_an_error_when_the_selection_changes_also_while_a_line_is_handled() -> None:
    async def main() -> None:
        shown = [1]
        server = Server(*[Answer(200, {}, b"")] * 3)
        client = selecting(server, lambda: {"labelSelector": str(shown[-1])})
        async with client.stream("/", query={}, headers={}) as answer:
            reader = asyncio.create_task(anext(answer.chunks, None))  # type: ignore[arg-type]
            server.lines.put_nowait(b"one")
            assert await reader == b"one"
            reader = asyncio.create_task(anext(answer.chunks, None))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            shown.append(2)
            client.reselect()
            assert await reader is None
        async with client.stream("/", query={}, headers={}) as answer:
            server.lines.put_nowait(b"two")
            assert await anext(answer.chunks) == b"two"
            client.reselect()
            assert await anext(answer.chunks, None) is None
        client.reselect()  # no watch is open
        async with client.stream("/", query={}, headers={}) as answer:
            server.lines.put_nowait(b"three")
            assert await anext(answer.chunks) == b"three"
        assert [query["labelSelector"] for query in server.queries] == ["1", "2", "2"]

    run(main)


def test_a_watch_that_times_out_is_not_taken_for_one_that_ended() -> None:
    async def main() -> None:
        server = Server(Answer(200, {}, b""))
        async with selecting(server).stream("/", query={}, headers={}) as answer:
            server.lines.put_nowait(TimeoutError())
            with pytest.raises(TimeoutError):
                await anext(answer.chunks)

    run(main)
