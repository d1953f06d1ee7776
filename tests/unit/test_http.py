"""HTTP: how answers are read, without a server; and that nothing damaged hangs, or is taken for another request's."""

from __future__ import annotations

import asyncio
import gzip
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.client.errors import AnswerTooLarge
from bonny.client.http.answer import LONGEST_HEAD, AnswerReader, BadAnswer, Disconnected
from bonny.client.http.connection import READ_BYTES, HttpConnection, WireRequest
from bonny.client.http.dial import address_of
from tests.support.certificates import Authority
from tests.support.mutations import ANSWERS, mutated

RUNTIME = Path(__file__).parents[2] / "runtime"
SECOND = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"
FOREVER = float("inf")
LIMIT = 1000
# So many of them take minutes.
MANY = 10_000_000


def reader(*pieces: bytes, method: str = "GET", limit: int | None = LIMIT) -> AnswerReader:
    """A reader that was given these pieces."""
    made = AnswerReader()
    made.expect(method, "/", limit)
    for piece in pieces:
        made.feed(memoryview(piece))
    return made


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", ANSWERS)
def test_an_answer_is_the_same_however_it_is_split(whole: bytes) -> None:
    expected = reader(whole)
    body = expected.take()
    for at in range(len(whole)):
        split = reader(whole[:at], whole[at:])
        assert (split.status, split.headers, split.complete) == (expected.status, expected.headers, expected.complete)
        assert (split.take(), split.reusable) == (body, expected.reusable)


def test_an_answer_that_switches_to_another_protocol_is_refused() -> None:
    with pytest.raises(BadAnswer, match="another protocol"):
        reader(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nx")


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * LONGEST_HEAD, id="header"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20_000, id="hints"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"y" * 2**19, id="trailer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"y" * 2**19, id="extension"),
    ],
)
def test_what_is_neither_head_nor_body_has_a_bound(endless: bytes) -> None:
    pieces = [endless[at : at + READ_BYTES] for at in range(0, len(endless), READ_BYTES)]
    with pytest.raises(BadAnswer, match="headers"):
        reader(*pieces)


def test_a_long_body_is_not_counted_as_headers() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    whole = reader(head, *[bytes(10_000)] * 100, limit=None)

    assert (whole.complete, len(whole.take())) == (True, 1_000_000)


@pytest.mark.parametrize("damage", ["cut", "changed", "followed", "not requested"])
def test_a_compressed_answer_that_is_damaged_is_refused(damage: str) -> None:
    packed = gzip.compress(b"abc" * 100)
    match damage:
        case "cut":
            packed = packed[:-3]
        case "changed":
            packed = packed[:-6] + b"xxxxxx"
        case "followed":
            packed += b"x"
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with pytest.raises(BadAnswer):
        reader(head + packed, limit=None if damage == "not requested" else LIMIT)


def test_a_body_has_a_bound() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"
    with pytest.raises(AnswerTooLarge, match="the answer to GET / has more than 1000 bytes"):
        reader(head, bytes(1001))


@pytest.mark.parametrize(
    ("head", "complete"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nabc", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", False),
        (b"HTTP/1.1 200 OK\r\nX: y", False),
        (b"", False),
    ],
)
def test_only_a_body_without_a_length_ends_with_the_connection(head: bytes, complete: bool) -> None:
    read = reader(head)
    if complete:
        read.end()
        assert (read.complete, read.reusable, read.take()) == (True, False, b"abc")
    else:
        with pytest.raises(Disconnected):
            read.end()


# --- damaged answers --------------------------------------------------------------------------------------------------


class Cable:
    """What a connection asks of asyncio's transport."""

    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    def write(self, data: bytes) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_write_buffer_limits(self, high: int) -> None: ...


class Exchanges:
    """Two exchanges on one connection, of which the first is answered by damaged bytes."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(READ_BYTES))

    def sent(self, connection: HttpConnection) -> None:
        sending = connection.send(WireRequest("GET", "/", b"GET / HTTP/1.1\r\n\r\n", LIMIT), FOREVER)
        with pytest.raises(StopIteration):
            sending.send(None)

    def arrive(self, connection: HttpConnection, data: bytes) -> None:
        if connection.error is None and data:
            self.buffer[: len(data)] = data
            connection.buffer_updated(len(data))

    def check(self, damaged: bytes, chance: random.Random) -> None:
        connection, cable = HttpConnection(self.buffer), Cable()
        connection.connection_made(cast("Any", cable))
        self.sent(connection)
        at = int(chance.random() * (len(damaged) + 1))
        self.arrive(connection, damaged[:at])
        if connection.answer.complete and chance.random() < 0.5:
            connection.answer.take()
            # The rest comes while the connection is idle.
            assert connection.rest() is not cable.aborted
            self.arrive(connection, damaged[at:])
            assert cable.aborted or at == len(damaged)
        else:
            self.arrive(connection, damaged[at:])
            if not connection.answer.complete and connection.error is None and chance.random() < 0.5:
                connection.eof_received()
                assert connection.answer.complete or connection.error is not None
            if connection.answer.complete:
                connection.answer.take()
                connection.rest()
        if connection.error is not None or not connection.answer.complete:
            return
        assert not cable.aborted
        self.sent(connection)
        self.arrive(connection, SECOND)
        assert connection.error is None
        assert (connection.answer.complete, connection.answer.status) == (True, 200)
        assert connection.answer.take() == b"second"


@given(seed=st.integers(0, 2**32), which=st.sampled_from(ANSWERS))
async def test_a_damaged_answer_ends_and_leaves_nothing_to_the_next(seed: int, which: bytes) -> None:
    chance = random.Random(seed)

    Exchanges().check(mutated(which, chance), chance)


@pytest.mark.parametrize("times", [20_000, pytest.param(MANY, marks=pytest.mark.slow)])
async def test_many_damaged_answers_end_and_leave_nothing_to_the_next(times: int) -> None:
    """Until one of them fails: the seed in the message repeats it."""
    exchanges, seed = Exchanges(), random.getrandbits(32)
    for number in range(times):
        chance = random.Random(seed + number)
        damaged = mutated(ANSWERS[number % len(ANSWERS)], chance)
        try:
            exchanges.check(damaged, chance)
        except AssertionError as error:
            raise AssertionError(f"seed {seed + number}: {damaged!r}") from error


async def test_a_connection_whose_answer_was_not_taken_is_closed() -> None:
    """Regression: it was paused, and the next request on it waited for nothing."""
    exchanges = Exchanges()
    connection, cable = HttpConnection(exchanges.buffer), Cable()
    connection.connection_made(cast("Any", cable))
    exchanges.sent(connection)
    exchanges.arrive(connection, SECOND)

    assert (connection.answer.complete, connection.rest(), cable.aborted) == (True, False, True)


async def test_what_arrives_on_an_idle_connection_closes_it() -> None:
    connection, cable = HttpConnection(memoryview(bytearray(100))), Cable()
    connection.connection_made(cast("Any", cable))

    connection.buffer_updated(1)

    assert cable.aborted
    with pytest.raises(BadAnswer, match="not requested"):
        await asyncio.wait_for(connection.send(WireRequest("GET", "/", b"x", 0), FOREVER), 5)


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://a.example.com", ("a.example.com", 443, "a.example.com", "", None)),
        ("http://a:443/", ("a", 443, "a:443", "", None)),
        ("https://[::1]:6443/k8s/c-1/", ("::1", 6443, "[::1]:6443", "/k8s/c-1", None)),
        ("http://bob:h%40x@proxy:3128", ("proxy", 3128, "proxy:3128", "", "Basic Ym9iOmhAeA==")),
        ("http://bob@proxy", ("proxy", 80, "proxy", "", "Basic Ym9iOg==")),
    ],
)
def test_the_parts_of_a_url(url: str, parts: tuple[object, ...]) -> None:
    assert address_of(url) == (url.startswith("https"), *parts)


@pytest.mark.parametrize("url", ["http://bob:hunter2@[bad", "bob:hunter2@a", "ftp://a", "http://", "http://a:0", ""])
def test_a_url_that_cannot_be_used_is_not_quoted(url: str) -> None:
    with pytest.raises(ValueError, match=r"^its URL, or the URL of the proxy, is not valid$"):
        address_of(url)


# --- what is loaded ---------------------------------------------------------------------------------------------------

PROGRAM = """
import asyncio, sys
from pathlib import Path
from bonny.client.api import Client
from bonny.client.request import ApiRequest
from bonny.client.config import InCluster
from bonny.client.errors import Unreachable

async def main():
    async with Client(InCluster("https://127.0.0.1:1", Path(sys.argv[1])), user_agent="test") as client:
        try:
            await client.exchange(ApiRequest("GET", "/version"))
        except Unreachable as error:
            print(error)

asyncio.run(main())
print(*sys.modules, sep="\\n")
"""


def test_a_request_in_a_cluster_loads_neither_aiohttp_nor_the_official_client(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret", "ascii")
    Authority(tmp_path)  # ca.crt
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=RUNTIME,
        capture_output=True,
        text=True,
        check=True,
    )
    said, *loaded = done.stdout.splitlines()

    assert said.startswith("https://127.0.0.1:1 cannot be reached: "), done.stdout
    assert "httptools" in loaded
    assert sorted({name.partition(".")[0] for name in loaded} & {"aiohttp", "kubernetes", "yarl"}) == []
