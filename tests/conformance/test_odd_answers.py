"""Odd answers: what HTTP allows and few servers send, and what it forbids and some send.

A client of one's own tends to get these wrong. An answer is read as it was meant or refused; nothing of it is ever
taken for the answer to another request.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.transport import Answer, Transport
from tests.conformance.conftest import SECRET, refused, until
from tests.support.mutations import ANSWERS, mutated
from tests.support.peer import Call, Peer, answer

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Turns of the loop in which a piece is read before the next one is sent, most of the time.
TURNS = 3


def told(url: str) -> Connection:
    return Connection(server=url, authorization=SECRET)


async def turns(count: int = TURNS) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def got(transport: Transport, *pieces: bytes, method: str = "GET") -> Answer:
    """The answer that comes in these pieces; afterwards the same transport reads another one correctly."""

    async def script(call: Call) -> None:
        while True:
            heard = await call.request()
            if heard.target == "/next":
                await call.say(answer(b"next"))
                continue
            for piece in pieces:
                await call.say(piece)
                await turns()
            said.set()

    said = asyncio.Event()
    async with Peer(script) as peer:
        try:
            return await transport.request(told(peer.url), method, "/", timeout=5)
        finally:
            # What comes when the next request is already sent cannot be told from its answer.
            await said.wait()
            after = await transport.request(told(peer.url), "GET", "/next", timeout=5)
            assert (after.status, after.body) == (200, b"next")


async def in_pieces(transport: Transport, pieces: tuple[bytes, ...]) -> bytes:
    """The body of a stream that comes in these pieces."""

    async def script(call: Call) -> None:
        await call.request()
        for piece in pieces:
            await call.say(piece)
            await turns()
        await call.hung_up()

    async with Peer(script) as peer, transport.stream(told(peer.url), "/", read_timeout=5) as streamed:
        return b"".join([chunk async for chunk in streamed.chunks])


# --- split anywhere ---------------------------------------------------------------------------------------------------

SPLIT = (
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nX-Empty:\r\nTransfer-Encoding: chunked\r\nX-Y: z\r\n\r\n"
    b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n"
)


async def test_an_answer_split_at_every_byte(transport: Transport) -> None:
    async def script(call: Call) -> None:
        while True:
            split = int((await call.request()).target.removeprefix("/"))
            await call.say(SPLIT[:split])
            await turns()
            await call.say(SPLIT[split:])

    async with Peer(script) as peer:
        for split in range(len(SPLIT)):
            read = await transport.request(told(peer.url), "GET", f"/{split}", timeout=5)
            assert (read.status, read.body, read.headers["x-y"], read.headers["x-empty"]) == (200, b"abcde", "z", "")
            assert "link" not in read.headers


async def test_an_answer_that_comes_byte_by_byte(transport: Transport) -> None:
    bytewise = tuple(bytes([byte]) for byte in SPLIT)

    assert (await got(transport, *bytewise)).body == b"abcde"
    assert await in_pieces(transport, bytewise) == b"abcde"


# --- more than was asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "rubbish",
    [
        pytest.param(answer(b"second"), id="an-answer"),
        pytest.param(answer(b"second")[:20], id="half-an-answer"),
        pytest.param(b"H", id="a-byte"),
        pytest.param(b"\x00\xff rubbish\r\n\r\n", id="rubbish"),
        pytest.param(b"x" * 300_000, id="much"),
    ],
)
async def test_what_follows_an_answer_is_not_the_next_one(transport: Transport, rubbish: bytes, together: bool) -> None:
    if not together and not isinstance(transport, Transport):
        pytest.skip("aiohttp takes what comes while a connection is idle for the next answer")
    first = answer(b"first")
    try:
        read = await got(transport, *([first + rubbish] if together else [first, rubbish]))
    except Unreachable:
        return
    assert read.body == b"first"


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize(
    "head",
    [
        pytest.param("Content-Length: 5\r\nTransfer-Encoding: chunked", id="length-first"),
        pytest.param("Transfer-Encoding: chunked\r\nContent-Length: 5", id="chunked-first"),
        pytest.param("Content-Length: 5\r\nContent-Length: 6", id="two-lengths"),
    ],
)
async def test_two_ways_to_say_where_a_body_ends_are_none(transport: Transport, method: str, head: str) -> None:
    """Smuggling: two readers that choose differently see different answers."""

    async def script(call: Call) -> None:
        await call.request()
        await call.say(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nabcde\r\n0\r\n\r\n".encode())

    async with Peer(script) as peer:
        await refused(transport.request(told(peer.url), method, "/", timeout=5))


# --- heads ------------------------------------------------------------------------------------------------------------


async def test_header_lines_of_64_kib(transport: Transport) -> None:
    read = await got(transport, answer(b"abc", headers=(f"X-Long: {'y' * 64 * 1024}", "X-Y: z")))

    assert (len(read.headers["x-long"]), read.headers["x-y"], read.body) == (64 * 1024, "z", b"abc")


async def test_a_thousand_headers(transport: Transport) -> None:
    headers = tuple(f"X-{number}: {number}" for number in range(1000))
    read = await got(transport, answer(b"abc", headers=(*headers, "Warning: a", "Warning: b")))

    assert [read.headers[f"x-{number}"] for number in range(1000)] == [str(number) for number in range(1000)]
    assert (read.headers["warning"], read.body) == ("a, b", b"abc")


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 400_000, id="headers"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100_000, id="hints"),
        pytest.param(CHUNKED + b"0\r\nX: " + b"y" * 2_000_000, id="trailer"),
    ],
)
async def test_heads_have_an_end(transport: Transport, endless: bytes) -> None:
    async def script(call: Call) -> None:
        await call.request()
        await call.say(endless)

    async with Peer(script) as peer:
        await refused(transport.request(told(peer.url), "GET", "/", timeout=1))


async def test_trailers_change_nothing(transport: Transport) -> None:
    reply = (
        b"HTTP/1.1 200 OK\r\nX-Y: z\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Y: other\r\nX-Z: t\r\n\r\n"
    )
    read = await got(transport, reply)

    assert (read.headers["x-y"], read.body) == ("z", b"a")
    assert await in_pieces(transport, (reply,)) == b"a"


# --- without a body ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "method"),
    [
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", "GET", id="204"),
        pytest.param(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "GET", id="204-length-0"),
        pytest.param(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "GET", id="204-length-5"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\n\r\n", "GET", id="304"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", id="304-length-5"),
        pytest.param(b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", "GET", id="205"),
        pytest.param(answer(b""), "PATCH", id="length-0"),
        pytest.param(CHUNKED + b"0\r\n\r\n", "DELETE", id="no-chunks"),
        pytest.param(answer(b"", headers=("Content-Encoding: gzip",)), "GET", id="gzip-of-nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", id="head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", id="head-chunked"),
    ],
)
async def test_answers_without_a_body(transport: Transport, reply: bytes, method: str) -> None:
    read = await got(transport, reply, method=method)

    assert (read.status, read.body) == (int(reply.split()[1]), b"")


# --- before the whole request was heard -------------------------------------------------------------------------------


@pytest.mark.parametrize("then", ["waits", "reads on"])
async def test_an_early_answer_to_a_large_body(transport: Transport, then: str) -> None:
    """Refused by its head: the answer counts, the rest is not sent, and the connection is not used again."""
    heard = []

    async def script(call: Call) -> None:
        heard.append(await call.head())
        await call.say(answer(b"too large", status="413 Payload Too Large"))
        if then == "reads on":
            await call.hung_up()
        else:
            await asyncio.Event().wait()

    async with Peer(script) as peer:
        for _ in range(2):
            read = await transport.request(told(peer.url), "PATCH", "/", body=bytes(30_000_000), timeout=5)
            assert (read.status, read.body) == (413, b"too large")
        assert len(heard) == len(peer.calls) == 2


# --- anything ---------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), which=st.sampled_from(ANSWERS), ends=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_damaged_answer_ends_in_time_and_is_no_other_requests(
    transport: Transport, seed: int, which: bytes, ends: bool
) -> None:
    damaged = mutated(which, random.Random(seed))

    async def script(call: Call) -> None:
        while True:
            heard = await call.request()
            if heard.target != "/damaged":
                await call.say(answer(heard.target.encode()))
                continue
            await call.say(damaged)
            if ends:
                return

    async def sound(number: int) -> None:
        read: Any = await transport.request(told(peer.url), "GET", f"/{number}", timeout=5)
        assert read.body == f"/{number}".encode()

    async with Peer(script) as peer:
        await sound(1)
        with contextlib.suppress(Unreachable):
            await transport.request(told(peer.url), "GET", "/damaged", timeout=0.2)
        for number in range(2, 4):
            await sound(number)
    await until(lambda: peer.open == 0)
