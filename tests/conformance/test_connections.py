"""Connections: used again where that is safe, writes never sent twice, certificates and proxies as they stand now."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bonny.client import clock
from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.http.dial import IDLE_SECONDS
from bonny.client.transport import Transport
from tests.conformance.conftest import LINUX, PATIENCE, SECRET, refused, until
from tests.support.certificates import Authority, Pair
from tests.support.peer import OK, Call, Peer, Script, answer, full_backlog, tunnel_to
from tests.support.sockets import between

WRITES = ("PATCH", "POST", "PUT", "DELETE")
HAS_IPV6 = socket.has_ipv6 and Path("/proc/net/if_inet6").exists()
# A dead peer is asked after for the first time within this time.
KEEPALIVE_SECONDS = 31


def told(url: str, **more: str | bool) -> Connection:
    return Connection(server=url, authorization=SECRET, **more)


# --- once, or again ---------------------------------------------------------------------------------------------------


async def answers_once(call: Call) -> None:
    """Answers the first request of a connection; when a second one came it hangs up."""
    await call.request()
    await call.say(OK)
    await call.request()


async def test_a_read_on_a_connection_that_the_server_gave_up_is_served_without_an_error(transport: Transport) -> None:
    async with Peer(answers_once) as peer:
        for _ in range(5):
            assert (await transport.request(told(peer.url), "GET", "/", timeout=5)).status == 200


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_on_a_connection_that_the_server_gave_up_is_not_sent_again(
    transport: Transport, method: str
) -> None:
    """Regression: of PUT and DELETE the library sent a second one, though the first may have been carried out."""
    async with Peer(answers_once) as peer:
        await transport.request(told(peer.url), "GET", "/", timeout=5)
        await refused(transport.request(told(peer.url), method, "/", body=b"{}", timeout=5))

        assert [heard.method for heard in peer.heard] == ["GET", method]


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("then", ["resets", "closes", "is half done"])
async def test_a_write_that_was_not_answered_is_not_sent_again(transport: Transport, method: str, then: str) -> None:
    async def hears(call: Call) -> None:
        await call.request()
        if then == "is half done":
            await call.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        if then == "resets":
            call.reset()

    async with Peer(hears) as peer:
        await refused(transport.request(told(peer.url), method, "/", body=b"{}", timeout=5))

        assert len(peer.heard) == 1


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_whose_time_is_over_before_it_was_sent_is_not_sent_any_more(
    transport: Transport, method: str
) -> None:
    """Regression: a process that was frozen for longer than its lease finished a write as soon as it was thawed."""
    body = bytes(8 * 1024 * 1024)  # some of it is sent in another round of the loop than the request was begun in
    async with Peer() as peer:
        await transport.request(told(peer.url), "GET", "/", timeout=5)
        writing = asyncio.create_task(transport.request(told(peer.url), method, "/", body=body, timeout=0.2))
        asyncio.get_running_loop().call_soon(time.sleep, 0.4)
        await refused(writing)
        await until(lambda: peer.open == 0)

        assert [heard.method for heard in peer.heard] == ["GET"]


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_whose_time_passed_while_the_machine_was_suspended_is_not_sent(
    transport: Transport, method: str, setting: Callable[[str, Any], None]
) -> None:
    """Regression: the monotonic clock stands still during suspend, and the lease's clock does not.

    The machine is suspended while the connection is being made, and is not held up otherwise.
    """
    now = [clock.clock()]
    setting("clock", lambda: now[0])
    async with Peer() as peer:
        writing = asyncio.create_task(transport.request(told(peer.url), method, "/", body=b"{}", timeout=PATIENCE))
        await asyncio.sleep(0)
        now[0] += 60.0
        await refused(writing)
        await until(lambda: peer.open == 0)

        assert [heard.method for heard in peer.heard if heard.body] == []


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_does_not_use_a_connection_that_a_proxy_is_about_to_close_for_idleness(
    factory: Callable[[], Transport], method: str, setting: Callable[[str, Any], None]
) -> None:
    """Regression: behind HAProxy, which closes after 10 s, a write that met its farewell failed. Times are a tenth."""
    setting("IDLE_SECONDS", IDLE_SECONDS / 10)

    async def closes_when_idle(call: Call) -> None:
        while True:
            began = time.monotonic()
            await call.request()
            if time.monotonic() - began > 0.9:  # the request and the farewell cross each other
                return
            await call.say(OK)

    transport = factory()
    try:
        async with Peer(closes_when_idle) as peer:
            for _ in range(3):
                got = await transport.request(told(peer.url), method, "/", body=b"{}", timeout=PATIENCE)
                assert got.status == 200
                await asyncio.sleep(1.0)
    finally:
        await transport.close()


async def test_connections_that_no_request_uses_any_more_are_closed(
    factory: Callable[[], Transport], setting: Callable[[str, Any], None]
) -> None:
    """Regression: after a burst a thousand connections stayed open, as only the next request closed old ones."""
    setting("IDLE_SECONDS", 0.5)
    transport, together = factory(), asyncio.Barrier(20)

    async def answers_all_at_once(call: Call) -> None:
        await call.request()
        await together.wait()
        await call.say(OK)
        await call.request()

    try:
        async with Peer(answers_all_at_once) as peer:
            requests = (transport.request(told(peer.url), "GET", "/", timeout=PATIENCE) for _ in range(20))
            assert [got.status for got in await asyncio.gather(*requests)] == [200] * 20
            assert peer.open == 20
            await until(lambda: peer.open == 0)
    finally:
        await transport.close()


async def test_a_read_whose_answer_had_begun_is_not_sent_again(transport: Transport) -> None:
    async def breaks_off(call: Call) -> None:
        await call.request()
        await call.say(OK)
        await call.request()
        await call.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")

    async with Peer(breaks_off) as peer:
        await transport.request(told(peer.url), "GET", "/", timeout=5)
        await refused(transport.request(told(peer.url), "GET", "/", timeout=5))

        assert len(peer.heard) == 2


async def test_a_read_is_sent_twice_at_most(transport: Transport) -> None:
    async def hears(call: Call) -> None:
        await call.request()

    async with Peer(hears) as peer:
        await refused(transport.request(told(peer.url), "GET", "/", timeout=5))

        assert len(peer.heard) <= 2


@pytest.mark.parametrize("method", ["GET", *WRITES])
async def test_a_connection_that_is_known_to_be_closed_is_not_used(transport: Transport, method: str) -> None:
    async def says_goodbye(call: Call) -> None:
        await call.request()
        await call.say(OK)
        call.end()
        await call.hung_up()

    async with Peer(says_goodbye) as peer:
        for _ in range(3):
            got = await transport.request(told(peer.url), method, "/", body=b"{}", timeout=5)
            assert got.status == 200
            await until(lambda: peer.open == 0)

        assert len(peer.heard) == 3


@pytest.mark.parametrize("method", ["GET", *WRITES])
async def test_a_server_that_closes_an_idle_connection_just_as_a_request_goes_out(
    transport: Transport, method: str
) -> None:
    """A read is served on another connection; a write is served once or refused, and never heard twice."""

    async def closes(call: Call) -> None:
        await call.request()
        await call.say(OK)
        if call is peer.calls[0]:
            await crossing.wait()
            return
        await call.hung_up()

    for turns in range(6):
        crossing = asyncio.Event()
        async with Peer(closes) as peer:
            await transport.request(told(peer.url), "GET", "/", timeout=5)
            crossing.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            asking = transport.request(told(peer.url), method, "/crossing", body=b"{}", timeout=5)
            if method == "GET":
                assert (await asking).status == 200
            else:
                with contextlib.suppress(Unreachable):
                    await asking
            assert [heard.target for heard in peer.heard].count("/crossing") <= 1


async def test_100_requests_that_are_cancelled_in_different_moments_leave_nothing(
    factory: Callable[[], Transport], tmp_path: Path
) -> None:
    """Regression: of one that was cancelled in the step in which its connection was made, the socket stayed open."""

    async def echoes(call: Call) -> None:
        while True:
            await call.say(answer((await call.request()).target.encode()))

    async def given_up(number: int) -> None:
        asking = asyncio.create_task(transport.request(connection, "GET", f"/{number}", timeout=30))
        for _ in range(number):
            await asyncio.sleep(0)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            assert (await asking).body == f"/{number}".encode()

    authority = Authority(tmp_path)
    transport = factory()
    async with Peer(echoes, tls=authority.issue("server").server_context()) as peer:
        connection = told(peer.url, ca_file=str(authority.certificate))
        for _ in range(3):
            await asyncio.gather(*(given_up(number) for number in range(100)))
            got = await transport.request(connection, "GET", "/sound", timeout=5)
            assert got.body == b"/sound"
        for number in range(60):  # one at a time, each of them on a connection of its own
            await transport.close()
            transport = factory()
            await given_up(number)
        await transport.close()
        await until(lambda: peer.open == 0)
    gc.collect()  # what was not closed gives a warning, which is an error here


async def test_a_connection_whose_answer_was_not_read_is_not_used_again(transport: Transport) -> None:
    """What is left of a given-up answer must not be taken for the next one."""

    async def late(call: Call) -> None:
        heard = await call.request()
        if heard.target == "/slow":
            await asyncio.sleep(0.3)
        await call.say(answer(heard.target.encode()))
        await call.hung_up()

    async with Peer(late) as peer:
        await refused(transport.request(told(peer.url), "GET", "/slow", timeout=0.1))
        got = await transport.request(told(peer.url), "GET", "/next", timeout=5)

    assert got.body == b"/next"


@LINUX
async def test_the_kernel_asks_idle_peers_whether_they_live(transport: Transport) -> None:
    async def quiet(call: Call) -> None:
        await call.request()
        await call.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await call.hung_up()

    async with Peer(quiet) as peer, transport.stream(told(peer.url), "/", read_timeout=60):
        waiting = asyncio.create_task(transport.request(told(peer.url), "GET", "/", timeout=60))
        await until(lambda: len(peer.heard) == 2)
        found = [between(local=call.port, remote=peer.port)[0] for call in peer.calls]
        waiting.cancel()

    assert all(one.keepalive_seconds is not None and one.keepalive_seconds <= KEEPALIVE_SECONDS for one in found), found


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
async def test_a_host_may_be_an_ipv6_address(transport: Transport, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server", hosts=("IP:::1",))
    async with Peer(host="::1") as plain, Peer(host="::1", tls=pair.server_context()) as secure:
        assert plain.url == f"http://[::1]:{plain.port}"
        for peer in (plain, secure):
            got = await transport.request(told(peer.url, ca_file=str(authority.certificate)), "GET", "/", timeout=5)
            assert got.status == 200


# --- certificates -----------------------------------------------------------------------------------------------------


async def test_a_server_is_trusted_by_its_authority_and_by_its_name(transport: Transport, tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path), Authority(tmp_path, "theirs")
    pair = ours.issue("server", hosts=("IP:127.0.0.1", "DNS:kubernetes"))
    elsewhere = ours.issue("elsewhere", hosts=("DNS:elsewhere",))
    async with Peer(tls=pair.server_context()) as peer, Peer(tls=elsewhere.server_context()) as misnamed:
        trusting, other = str(ours.certificate), str(theirs.certificate)

        for connection in (
            told(peer.url, ca_file=trusting),
            told(peer.url, ca_file=trusting, server_name="kubernetes"),
            told(misnamed.url, ca_file=trusting, server_name="elsewhere"),
            told(misnamed.url, ca_file=other, verify=False),
            told(misnamed.url, verify=False),
        ):
            assert (await transport.request(connection, "GET", "/", timeout=5)).status == 200
            async with transport.stream(connection, "/", read_timeout=5) as streamed:
                assert streamed.status == 200
        heard = len(peer.heard) + len(misnamed.heard)
        for connection in (
            told(peer.url, ca_file=other),
            told(peer.url),
            told(peer.url, ca_file=trusting, server_name="elsewhere"),
            told(misnamed.url, ca_file=trusting),
        ):
            error = await refused(transport.request(connection, "GET", "/", timeout=5))
            assert "certificate verify failed" in str(error)
        assert len(peer.heard) + len(misnamed.heard) == heard, "nothing is said to a stranger"


async def test_authorities_of_old_clusters_are_trusted_as_kubectl_does(transport: Transport, tmp_path: Path) -> None:
    """Regression: since Python 3.13 certificates without key identifiers, as EKS has them, are refused by default."""
    old = Authority(tmp_path, plain=True)
    async with Peer(tls=old.issue("server").server_context()) as peer:
        got = await transport.request(told(peer.url, ca_file=str(old.certificate)), "GET", "/", timeout=5)

    assert got.status == 200


async def subject(call: Call) -> None:
    """Answers with the name in the client's certificate."""
    while True:
        await call.request()
        await call.say(answer(call.client_name.encode()))


async def test_a_client_certificate_is_presented_and_a_new_one_from_the_next_connection_on(
    transport: Transport, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    first, second = (authority.issue(name, subject=f"/CN={name}") for name in ("first", "second"))
    used = Pair(tmp_path / "tls.crt", tmp_path / "tls.key")
    replace(used, first)
    server = authority.issue("server").server_context(clients=authority.certificate)
    async with Peer(subject, tls=server) as peer:
        connection = told(
            peer.url, ca_file=str(authority.certificate), cert_file=str(used.certificate), key_file=str(used.key)
        )
        names = [(await transport.request(connection, "GET", "/", timeout=5)).body for _ in range(2)]
        used.certificate.write_bytes(second.certificate.read_bytes())
        # The key does not fit the certificate yet: what was read before goes on.
        names.append((await transport.request(connection, "GET", "/", timeout=5)).body)
        replace(used, second)
        names.append((await transport.request(connection, "GET", "/", timeout=5)).body)

    assert names == [b"first", b"first", b"first", b"second"]


def replace(used: Pair, by: Pair) -> None:
    for file, source in zip(used, by, strict=True):
        shutil.copy(source, file)


@pytest.mark.parametrize("first", ["the file", "the server"])
async def test_a_new_authority_is_trusted_from_the_next_connection_on(
    transport: Transport, tmp_path: Path, first: str
) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*old.issue("before"))
    after, file = new.issue("after"), tmp_path / "ca.crt"
    shutil.copy(old.certificate, file)

    async def one(call: Call) -> None:
        await call.request()
        await call.say(OK)

    async with Peer(one, tls=serving) as peer:
        connection = told(peer.url, ca_file=str(file))
        assert (await transport.request(connection, "GET", "/", timeout=5)).status == 200
        if first == "the file":
            shutil.copy(new.certificate, file)
        else:
            serving.load_cert_chain(*after)
        await refused(transport.request(connection, "PATCH", "/", timeout=5))
        shutil.copy(new.certificate, file)
        serving.load_cert_chain(*after)

        assert (await transport.request(connection, "PATCH", "/", timeout=5)).status == 200


@pytest.mark.parametrize("state", ["missing", "empty", "half written", "a folder", "no certificate"])
async def test_an_authority_that_cannot_be_read_for_a_moment_hurts_nobody(
    transport: Transport, tmp_path: Path, state: str
) -> None:
    """Regression: while the file was replaced every request failed, also those on open connections."""
    authority, file = Authority(tmp_path), tmp_path / "mounted.crt"
    async with Peer(tls=authority.issue("server").server_context()) as peer:
        connection = told(peer.url, ca_file=str(file))
        _spoil(file, state, authority)
        error = await refused(transport.request(connection, "GET", "/", timeout=5))
        assert str(file) in str(error), "before it was ever read the file is to blame"

        if file.is_dir():
            file.rmdir()
        shutil.copy(authority.certificate, file)
        assert (await transport.request(connection, "GET", "/", timeout=5)).status == 200
        _spoil(file, state, authority)
        assert (await transport.request(connection, "GET", "/", timeout=5)).status == 200
        async with transport.stream(connection, "/", read_timeout=5) as streamed:
            assert streamed.status == 200


def _spoil(file: Path, state: str, authority: Authority) -> None:
    file.unlink(missing_ok=True)
    whole = authority.certificate.read_bytes()
    match state:
        case "empty":
            file.touch()
        case "half written":
            file.write_bytes(whole[: len(whole) // 2])
        case "a folder":
            file.mkdir()
        case "no certificate":
            file.write_text("hello", "ascii")


async def test_a_file_that_is_written_twice_in_a_moment_is_noticed(transport: Transport, tmp_path: Path) -> None:
    """Regression: its time alone does not tell, when it is no finer than the clock's ticks."""
    old, new, file = Authority(tmp_path, "old"), Authority(tmp_path, "new"), tmp_path / "ca.crt"
    async with Peer(tls=new.issue("server").server_context()) as peer:
        shutil.copy(old.certificate, file)
        await refused(transport.request(told(peer.url, ca_file=str(file)), "GET", "/", timeout=5))
        times = file.stat()
        fresh = tmp_path / "fresh"
        shutil.copy(new.certificate, fresh)
        fresh.replace(file)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

        assert (await transport.request(told(peer.url, ca_file=str(file)), "GET", "/", timeout=5)).status == 200


async def test_certificates_that_are_replaced_under_load(transport: Transport, tmp_path: Path) -> None:
    """Every request succeeds, with the old or the new certificate; also while the key does not fit yet."""
    authority = Authority(tmp_path)
    pairs = [authority.issue(name, subject=f"/CN={name}") for name in ("first", "second")]
    used = Pair(tmp_path / "tls.crt", tmp_path / "tls.key")
    replace(used, pairs[0])
    server = authority.issue("server").server_context(clients=authority.certificate)
    async with Peer(subject, tls=server) as peer:
        connection = told(
            peer.url, ca_file=str(authority.certificate), cert_file=str(used.certificate), key_file=str(used.key)
        )
        replaced = asyncio.Event()

        async def load() -> set[bytes]:
            names = set()
            while not replaced.is_set():
                names.add((await transport.request(connection, "GET", "/", timeout=5)).body)
            return names

        loads = [asyncio.create_task(load()) for _ in range(4)]
        await until(lambda: len(peer.heard) > 8)
        for number in range(1, 12):
            for file, source in zip(used, pairs[number % 2], strict=True):
                shutil.copy(source, file)
                enough = len(peer.heard) + 8
                await until(lambda enough=enough: len(peer.heard) > enough)
        replaced.set()
        names = set().union(*await asyncio.gather(*loads))
        assert names == {b"first", b"second"}
        assert (await transport.request(connection, "GET", "/", timeout=5)).body == b"second"


@pytest.mark.parametrize("complete", [True, False])
async def test_a_server_that_ends_tls_without_a_farewell(transport: Transport, tmp_path: Path, complete: bool) -> None:
    """What has a length is complete without it, and what was cut stays cut."""

    async def cuts(call: Call) -> None:
        await call.request()
        await call.say(answer(b"whole") if complete else answer(b"whole")[:-1])
        call.cut()

    authority = Authority(tmp_path)
    async with Peer(cuts, tls=authority.issue("server").server_context()) as peer:
        connection = told(peer.url, ca_file=str(authority.certificate))
        if not complete:
            await refused(transport.request(connection, "PATCH", "/", timeout=5))
            return
        assert (await transport.request(connection, "PATCH", "/", timeout=5)).body == b"whole"
        assert (await transport.request(connection, "GET", "/", timeout=5)).body == b"whole"


# --- proxies ----------------------------------------------------------------------------------------------------------


async def test_a_proxy_is_asked_for_a_tunnel_and_hears_nothing_else(transport: Transport, cluster: Connection) -> None:
    port = int(cluster.server.rsplit(":", 1)[1])
    async with Peer(tunnel_to(port)) as proxy:
        # The cluster's name is one that only the proxy can find.
        connection = Connection(
            server="https://kubernetes.default.svc",
            authorization=cluster.authorization,
            ca_file=cluster.ca_file,
            proxy=proxy.url.replace("http://", "http://bob:hunter2@"),
        )
        for _ in range(3):
            assert (await transport.request(connection, "GET", "/api/v1/nodes", timeout=10)).status == 200
        async with transport.stream(connection, "/api/v1/nodes?watch=true", read_timeout=60) as streamed:
            assert streamed.status == 200

    assert [(heard.method, heard.target) for heard in proxy.heard] == [("CONNECT", "kubernetes.default.svc:443")] * 2
    assert {heard.headers["proxy-authorization"] for heard in proxy.heard} == {"Basic Ym9iOmh1bnRlcjI="}
    assert not any("authorization" in heard.headers for heard in proxy.heard)


async def test_a_tunnel_to_a_server_with_another_name(transport: Transport, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server", hosts=("DNS:inner",))
    async with Peer(tls=pair.server_context()) as server, Peer(tunnel_to(server.port)) as proxy:
        ca = str(authority.certificate)
        named = Connection(server="https://outer.example.com", ca_file=ca, server_name="inner", proxy=proxy.url)
        assert (await transport.request(named, "GET", "/", timeout=5)).status == 200
        unnamed = Connection(server="https://outer.example.com", ca_file=ca, proxy=proxy.url)
        await refused(transport.request(unnamed, "GET", "/", timeout=5))


async def test_a_proxy_that_speaks_tls_itself(transport: Transport, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    inner = authority.issue("inner", hosts=("DNS:inner.example.com",)).server_context()
    outer = authority.issue("outer").server_context()
    async with Peer(tls=inner) as server, Peer(tunnel_to(server.port), tls=outer) as proxy:
        ca = str(authority.certificate)
        connection = Connection(server="https://inner.example.com", ca_file=ca, proxy=proxy.url)
        for _ in range(2):
            assert (await transport.request(connection, "PATCH", "/", body=b"{}", timeout=5)).status == 200
        untrusted = Connection(server="https://inner.example.com", proxy=proxy.url)
        error = await refused(transport.request(untrusted, "GET", "/", timeout=5))

    assert "certificate verify failed" in str(error)
    assert [heard.target for heard in proxy.heard] == ["inner.example.com:443"]


async def test_a_proxy_may_answer_for_a_server_without_tls(transport: Transport) -> None:
    async with Peer() as proxy:
        connection = Connection(server="http://kubernetes.example.com:8001", proxy=proxy.url)
        assert (await transport.request(connection, "GET", "/version", timeout=5)).status == 200

    assert proxy.heard[0].target == "http://kubernetes.example.com:8001/version"


async def refuses(call: Call) -> None:
    await call.request()
    await call.say(answer(b"no", status="407 Proxy Authentication Required"))


async def hangs_up(call: Call) -> None:
    await call.request()


async def lies(call: Call) -> None:
    """Says that there is a tunnel, and that is the end of it."""
    await call.request()
    await call.say(b"HTTP/1.1 200 OK\r\n\r\n")


@pytest.mark.parametrize("script", [refuses, hangs_up, lies])
async def test_a_proxy_that_gives_no_tunnel(transport: Transport, script: Script) -> None:
    async with Peer(script) as proxy:
        connection = _behind(proxy.url)
        for doing in (transport.request(connection, "PATCH", "/", timeout=5), _opened(transport, connection)):
            error = await refused(doing)
            assert "https://kubernetes.example.com" in str(error)


async def test_a_proxy_that_refuses_a_tunnel_is_quoted_with_each_status(transport: Transport) -> None:
    async def says(call: Call) -> None:
        await call.request()
        await call.say(answer(status=f"{status} Because"))

    async with Peer(says) as proxy:
        for status in range(300, 600):
            error = await refused(transport.request(_behind(proxy.url), "PATCH", "/", timeout=5))
            assert str(error) == f"https://kubernetes.example.com cannot be reached: {status} Because"


@pytest.mark.parametrize("how", ["takes no connections", "never answers", "never speaks TLS"])
@pytest.mark.parametrize("streamed", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_proxy_that_is_silent_is_given_up_in_time(transport: Transport, how: str, streamed: bool) -> None:
    """Regression: a stream waited for ever for a proxy's answer."""

    async def silent(call: Call) -> None:
        await call.request()
        if how == "never speaks TLS":
            await call.say(b"HTTP/1.1 200 OK\r\n\r\n")
        await call.hung_up()

    with full_backlog() as unreachable:
        async with Peer(silent) as proxy:
            connection = _behind(unreachable if how == "takes no connections" else proxy.url)
            if streamed:
                # A stream has no deadline of its own: to connect may take 10 s.
                await refused(_opened(transport, connection), within_seconds=10 + PATIENCE)
            else:
                await refused(transport.request(connection, "GET", "/", timeout=0.5))


@pytest.mark.parametrize("proxy", ["http://bob:hunter2@[bad", "http://bob:hunter2@127.0.0.1:1", "hunter2"])
async def test_a_proxy_that_is_none_is_told_without_its_password(transport: Transport, proxy: str) -> None:
    """Regression: the library's error quotes the URL."""
    connection = Connection(server="https://kubernetes.example.com", proxy=proxy)
    for doing in (transport.request(connection, "GET", "/", timeout=5), _opened(transport, connection)):
        error = await refused(doing)
        assert "hunter2" not in str(error)


def _behind(proxy: str) -> Connection:
    return Connection(
        server="https://kubernetes.example.com",
        authorization=SECRET,
        proxy=proxy.replace("http://", "http://bob:hunter2@"),
    )


async def _opened(transport: Transport, connection: Connection) -> None:
    async with transport.stream(connection, "/", read_timeout=60):
        pass
