"""Answers: what was asked arrives as it was given, and what was answered comes back as it was sent."""

from __future__ import annotations

import base64
import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bonny.client.api import JSON
from bonny.client.config import Connection
from bonny.client.errors import AnswerTooLarge
from bonny.client.request import path_of, target_of
from bonny.client.transport import Transport
from bonny.kinds import Kind
from bonny_dev.sandbox import Sandbox
from tests.conformance.conftest import SECRET, USER_AGENT
from tests.support.peer import Call, Peer, answer

CONFIG_MAP = Kind("v1", "ConfigMap")
# The one kind whose content has no schema and no limit but etcd's.
REVISION = Kind("apps/v1", "ControllerRevision")
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
# etcd takes requests of 1.5 MiB.
BIG = 1_400_000


async def once(transport: Transport, reply: bytes, *, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """What becomes of the bytes of an answer."""

    async def script(call: Call) -> None:
        await call.request()
        await call.say(reply)

    async with Peer(script) as peer:
        got = await transport.request(Connection(server=peer.url), method, "/", timeout=5)
    return got.status, dict(got.headers), got.body


# --- on the real API server -------------------------------------------------------------------------------------------


async def test_status_headers_and_body_are_those_of_the_server(transport: Transport, cluster: Connection) -> None:
    found = await transport.request(cluster, "GET", "/api/v1/namespaces/default", timeout=10)
    missing = await transport.request(cluster, "GET", "/api/v1/namespaces/nowhere", timeout=10)

    assert (found.status, missing.status) == (200, 404)
    assert found.headers["content-type"] == "application/json"
    assert "audit-id" in found.headers
    assert all(name == name.lower() for name in found.headers)
    assert msgspec.json.decode(found.body)["metadata"]["name"] == "default"


async def test_what_is_sent_is_stored_and_what_is_stored_comes_back(transport: Transport, cluster: Connection) -> None:
    path, headers = path_of(CONFIG_MAP, "default"), {"Content-Type": JSON}
    body = msgspec.json.encode({"metadata": {"name": "sent"}, "data": {"a": "größe\n\u2028 1 %"}})

    made = await transport.request(cluster, "POST", path, body=body, headers=headers, timeout=10)
    read = await transport.request(cluster, "GET", f"{path}/sent", timeout=10)
    gone = await transport.request(cluster, "DELETE", f"{path}/sent", timeout=10)

    assert (made.status, read.status, gone.status) == (201, 200, 200)
    assert msgspec.json.decode(read.body)["data"] == {"a": "größe\n\u2028 1 %"}


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("example.com/of=a,!example.com/x", ["a"]),
        ("example.com/of in (a,b),example.com/of!=b", ["a"]),
        ("example.com/of notin (a),example.com/of", ["b"]),
    ],
)
async def test_selectors_reach_the_server_as_they_were_meant(
    transport: Transport, cluster: Connection, sandbox: Sandbox, selector: str, names: list[str]
) -> None:
    sandbox.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default", "labels": {"example.com/of": name}},
            }
            for name in ("a", "b")
        ]
    )

    found = await transport.request(
        cluster, "GET", target_of(path_of(CONFIG_MAP, "default"), {"labelSelector": selector}), timeout=10
    )

    assert [item["metadata"]["name"] for item in msgspec.json.decode(found.body)["items"]] == names


async def test_a_name_that_is_not_ascii_is_found(transport: Transport, cluster: Connection, sandbox: Sandbox) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "größe:x+y ?#"}}
    path = path_of(CLUSTER_ROLE)
    made = await transport.request(
        cluster, "POST", path, body=msgspec.json.encode(role), headers={"Content-Type": JSON}, timeout=10
    )
    assert made.status == 201, made.body

    found = await transport.request(cluster, "GET", path_of(CLUSTER_ROLE, name="größe:x+y ?#"), timeout=10)
    gone = await transport.request(cluster, "DELETE", path_of(CLUSTER_ROLE, name="größe:x+y ?#"), timeout=10)

    assert (found.status, gone.status) == (200, 200)
    assert msgspec.json.decode(found.body)["metadata"]["name"] == "größe:x+y ?#"


async def test_big_objects_go_both_ways_and_lists_of_megabytes_come(transport: Transport, cluster: Connection) -> None:
    path = path_of(REVISION, "default")
    content = base64.b64encode(random.Random(1).randbytes(BIG * 3 // 4)).decode()
    for number in range(4):
        revision = {"metadata": {"name": f"big-{number}"}, "revision": number, "data": {"content": content}}
        body = msgspec.json.encode(revision)
        made = await transport.request(cluster, "POST", path, body=body, headers={"Content-Type": JSON}, timeout=30)
        assert made.status == 201, made.body[:300]

    found = await transport.request(cluster, "GET", path, timeout=30)

    assert len(found.body) > 4 * BIG
    assert [item["data"]["content"] == content for item in msgspec.json.decode(found.body)["items"]] == [True] * 4
    gone = await transport.request(cluster, "DELETE", path, timeout=30)
    assert gone.status == 200


# --- byte for byte ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/pods?labelSelector=a%3Db%2C%21c",
        "/api/v1/pods?labelSelector=a=b,!c&x=/;:@",
        "/a%2Fb/%25/gr%C3%B6%C3%9Fe",
        "/a/../b//c/./d",
        "/?continue=" + "A" * 6000,
    ],
)
async def test_targets_are_sent_as_they_are_given(transport: Transport, target: str) -> None:
    async with Peer() as peer:
        await transport.request(Connection(server=peer.url), "GET", target, timeout=5)
        async with transport.stream(Connection(server=peer.url), target, read_timeout=5):
            pass

    assert [heard.target for heard in peer.heard] == [target] * 2


async def test_a_server_below_a_path_is_asked_there(transport: Transport) -> None:
    async with Peer() as peer:
        await transport.request(Connection(server=f"{peer.url}/k8s/clusters/c-1"), "GET", "/version", timeout=5)

    assert peer.heard[0].target == "/k8s/clusters/c-1/version"


async def test_who_asks_and_what_is_wanted_is_said_and_nothing_of_the_library(transport: Transport) -> None:
    async with Peer() as peer:
        told = Connection(server=peer.url, authorization=SECRET)
        await transport.request(told, "PATCH", "/", body=b"{}", headers={"Content-Type": "x/y"}, timeout=5)
        await transport.request(Connection(server=peer.url), "GET", "/", timeout=5)
        async with transport.stream(told, "/", read_timeout=5):
            pass

    sent, anonymous, streamed = (dict(heard.headers) for heard in peer.heard)
    assert sent["user-agent"] == anonymous["user-agent"] == streamed["user-agent"] == USER_AGENT
    assert sent["accept"] == streamed["accept"] == "application/json"
    assert sent["authorization"] == streamed["authorization"] == SECRET
    assert "authorization" not in anonymous
    assert (sent["content-type"], sent["content-length"], peer.heard[0].body) == ("x/y", "2", b"{}")
    assert "content-type" not in anonymous


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(answer(b"abc"), b"abc", id="length"),
        pytest.param(answer(b"", status="204 No Content"), b"", id="nothing"),
        pytest.param(answer(bytes(range(256))), bytes(range(256)), id="bytes"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            b"abcde",
            id="chunks",
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end", id="until-the-end"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer(b"abc"), b"abc", id="after-a-hint"),
    ],
)
async def test_bodies_end_where_the_server_says(transport: Transport, reply: bytes, expected: bytes) -> None:
    _, _, body = await once(transport, reply)

    assert body == expected


async def test_names_of_headers_are_lower_case(transport: Transport) -> None:
    _, headers, _ = await once(transport, answer(b"", headers=("ReTry-AFTER: 3", "X-Y:z")))

    assert (headers["retry-after"], headers["x-y"]) == ("3", "z")


@pytest.mark.parametrize("status", [299, 302, 307, 400, 410, 429, 500, 503, 599])
async def test_a_refusal_is_an_answer_like_any_other(transport: Transport, status: int) -> None:
    got, _, body = await once(transport, answer(b"<html>", status=f"{status} Whatever"), method="PATCH")

    assert (got, body) == (status, b"<html>")


async def test_redirects_are_not_followed(transport: Transport) -> None:
    """Where one leads to would get the token."""

    async def elsewhere(call: Call) -> None:
        while True:
            await call.request()
            await call.say(answer(b"", status="302 Found", headers=("Location: /elsewhere",)))

    async with Peer(elsewhere) as peer:
        got = await transport.request(Connection(server=peer.url), "GET", "/", timeout=5)
        async with transport.stream(Connection(server=peer.url), "/", read_timeout=5) as streamed:
            status = streamed.status

    assert (got.status, status) == (302, 302)
    assert [heard.target for heard in peer.heard] == ["/", "/"]


async def test_cookies_are_not_kept(transport: Transport) -> None:
    async def baker(call: Call) -> None:
        while True:
            await call.request()
            await call.say(answer(b"", headers=("Set-Cookie: route=1; Path=/",)))

    async with Peer(baker) as peer:
        for _ in range(2):
            await transport.request(Connection(server=peer.url), "GET", "/", timeout=5)
            async with transport.stream(Connection(server=peer.url), "/", read_timeout=5):
                pass

    assert len(peer.heard) == 4
    assert not any("cookie" in heard.headers for heard in peer.heard)


async def test_what_is_compressed_is_unpacked_or_was_never_asked_for(transport: Transport) -> None:
    async def packs(call: Call) -> None:
        while True:
            heard = await call.request()
            if "gzip" in heard.headers.get("accept-encoding", ""):
                await call.say(answer(gzip.compress(b"abc" * 100), headers=("Content-Encoding: gzip",)))
            else:
                await call.say(answer(b"abc" * 100))

    async with Peer(packs) as peer:
        got = await transport.request(Connection(server=peer.url), "GET", "/", timeout=5)
        async with transport.stream(Connection(server=peer.url), "/", read_timeout=5) as streamed:
            chunks = [chunk async for chunk in streamed.chunks]

    assert got.body == b"".join(chunks) == b"abc" * 100


@pytest.mark.parametrize("limit", [1_000_000, None])
async def test_a_compressed_answer_is_not_unpacked_beyond_its_bound(
    transport: Transport, setting: Callable[[str, Any], None], limit: int | None
) -> None:
    """Regression: without a bound of the caller there was none, and 600 MB of blanks were read into memory."""
    setting("LONGEST_ANSWER", 1_000_000)
    blanks = b" " * 1_000_000
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join([*(packer.compress(blanks) for _ in range(200)), packer.flush()])

    async def packs(call: Call) -> None:
        await call.request()
        await call.say(answer(bomb, headers=("Content-Encoding: gzip",)))

    async with Peer(packs) as peer:
        tracemalloc.start()
        try:
            with pytest.raises(AnswerTooLarge):
                await transport.request(Connection(server=peer.url), "GET", "/", timeout=20, limit_bytes=limit)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 20_000_000


async def test_one_connection_serves_requests_one_after_the_other(transport: Transport) -> None:
    async with Peer() as peer:
        for method in ("GET", "PATCH", "POST", "PUT", "DELETE"):
            await transport.request(Connection(server=peer.url), method, "/", timeout=5)

        assert len(peer.heard) == 5
        assert len(peer.calls) == 1
