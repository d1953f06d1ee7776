"""What a request does with 429 and 401, on a real API server: it asks again, never too soon and never for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from bonny.client.api import Client
from bonny.client.config import Connection
from bonny.client.errors import LEFT_OUT, Throttled, Unauthorized, Unreachable
from bonny.kinds import Kind
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Drop, Fault, FaultProxy, Respond, is_any

NAMESPACE = Kind("v1", "Namespace")
TIMEOUT = 4.0


@dataclass
class Counting:
    """The proxy as a cluster; counts how often the credentials were read."""

    proxy: FaultProxy
    source: str = "the proxy"
    readings: int = 0

    async def connect(self) -> Connection:
        self.readings += 1
        return Connection(server=self.proxy.url, authorization=f"Bearer {self.readings}")


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultProxy]:
    with FaultProxy(sandbox) as started:
        yield started


@pytest.fixture
def cluster(proxy: FaultProxy) -> Counting:
    return Counting(proxy)


@pytest.fixture
async def client(cluster: Counting) -> AsyncIterator[Client]:
    async with Client(cluster, user_agent="exchange/1.0", timeout=TIMEOUT) as made:
        yield made


def throttle(proxy: FaultProxy, retry_after: str | None, *, times: int | None = None) -> Fault:
    return proxy.add(Fault(Respond(429, b"Too many requests", retry_after=retry_after), times=times))


# --- 429 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("advice", [None, "0", "0.001", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"])
async def test_advice_that_is_none_is_no_reason_to_run_in_circles(
    proxy: FaultProxy, client: Client, advice: str | None
) -> None:
    throttle(proxy, advice)
    began = time.monotonic()
    with pytest.raises(Throttled):
        await client.get(NAMESPACE, "default")

    assert time.monotonic() - began < TIMEOUT + 1
    assert 2 <= proxy.count(is_any) <= 4, "one a second, until the deadline"


async def test_what_the_server_advises_is_waited_for(proxy: FaultProxy, client: Client) -> None:
    throttle(proxy, "2", times=1)

    assert (await client.get(NAMESPACE, "default"))["metadata"]["name"] == "default"

    (gap,) = (later.time - sooner.time for sooner, later in pairwise(proxy.requests))
    assert gap >= 2


@pytest.mark.parametrize("advice", ["5", "86400", "99999999999999999999", "9" * 400])
async def test_advice_beyond_the_deadline_is_handed_on_at_once(proxy: FaultProxy, client: Client, advice: str) -> None:
    throttle(proxy, advice)
    began = time.monotonic()
    with pytest.raises(Throttled) as caught:
        await client.get(NAMESPACE, "default")

    assert time.monotonic() - began < 1
    assert proxy.count(is_any) == 1
    assert caught.value.retry_after == float(advice)


async def test_no_request_is_repeated_that_has_no_time_left_for_an_answer(
    proxy: FaultProxy, cluster: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: it was sent with a tenth of a second left, and the caller heard of a timeout, not of the 429."""
    monkeypatch.setattr("bonny.client.api.random.random", lambda: 0.0)
    throttle(proxy, "2")
    async with Client(cluster, user_agent="exchange/1.0", timeout=2.1) as client:
        with pytest.raises(Throttled):
            await client.get(NAMESPACE, "default")

    assert proxy.count(is_any) == 1


async def test_those_who_are_refused_together_do_not_come_back_together(proxy: FaultProxy, client: Client) -> None:
    throttle(proxy, "1", times=20)
    await asyncio.gather(*(client.get(NAMESPACE, "default") for _ in range(20)))

    again = sorted(request.time for request in proxy.requests)[20:]
    assert len(again) == 20
    assert again[-1] - again[0] > 0.05, "spread over a quarter of the advice"


# --- 401 --------------------------------------------------------------------------------------------------------------


async def test_refused_credentials_are_read_again_and_tried_once(
    proxy: FaultProxy, client: Client, cluster: Counting
) -> None:
    proxy.add(Fault(Respond(401, b"Unauthorized"), times=1))
    assert (await client.get(NAMESPACE, "default"))["metadata"]["name"] == "default"
    assert (cluster.readings, proxy.count(is_any)) == (2, 2)

    proxy.add(Fault(Respond(401, b"Unauthorized"), times=None))
    with pytest.raises(Unauthorized):
        await client.get(NAMESPACE, "default")
    assert (cluster.readings, proxy.count(is_any)) == (3, 4)


async def test_many_that_are_refused_together_read_the_credentials_once(
    proxy: FaultProxy, client: Client, cluster: Counting
) -> None:
    """Regression: each of them ran the exec plugin."""
    proxy.add(Fault(Respond(401, b"Unauthorized"), times=50))
    await asyncio.gather(*(client.get(NAMESPACE, "default") for _ in range(50)))

    assert (cluster.readings, proxy.count(is_any)) == (2, 100)


async def test_credentials_that_are_refused_after_a_wait_are_renewed_once_in_all(
    proxy: FaultProxy, client: Client, cluster: Counting
) -> None:
    for code in (401, 429, 401):
        proxy.add(Fault(Respond(code, b"no"), times=1))
    with pytest.raises(Unauthorized):
        await client.get(NAMESPACE, "default")

    assert (cluster.readings, proxy.count(is_any)) == (2, 3)


# --- warnings ---------------------------------------------------------------------------------------------------------


async def test_what_the_api_server_warns_of_is_logged_once(
    sandbox: Sandbox, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    labels = {"pod-security.kubernetes.io/warn": "restricted"}
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "warned", "labels": labels}})
    for name in ("one", "two"):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "warned"},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }
        await client.apply(Kind("v1", "Pod"), pod, manager="exchange", dry_run=True)

    told = [vars(record)["warning"] for record in caplog.records if record.message == "the API server warns"]
    assert told == [LEFT_OUT]  # the text of a policy may quote the object (0100)
    assert sandbox.items("v1", "Pod", namespace="warned") == []


# --- what an apply carries --------------------------------------------------------------------------------------------


async def test_an_apply_stores_every_character_as_it_was_given(sandbox: Sandbox, client: Client) -> None:
    """Regression: an apply is read as YAML, which refused U+007F and made a line feed of U+0085."""
    odd = "".join(map(chr, [*range(0x20), *range(0x7E, 0xA1), 0x2028, 0x2029, 0xD7FF, 0xFEFF, 0xFFFE, 0xFFFF, 0x1F600]))
    key = {"name": "odd", "namespace": "default"}
    await client.apply(
        Kind("v1", "ConfigMap"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": key, "data": {"odd": odd}},
        manager="exchange",
    )

    stored = sandbox.get("v1", "ConfigMap", "odd")
    sandbox.delete("v1", "ConfigMap", "odd")
    assert stored is not None
    assert stored["data"]["odd"] == odd


# --- what is counted --------------------------------------------------------------------------------------------------


async def test_every_answer_is_counted_by_method_and_status_and_so_is_the_time_waited_for_429(
    proxy: FaultProxy, client: Client
) -> None:
    throttle(proxy, "1", times=1)

    await client.get(NAMESPACE, "default")
    async with client.stream("/api/v1/namespaces", query={"watch": "true"}, read_timeout=TIMEOUT) as answer:
        assert answer.status == 200
    proxy.add(Fault(Drop(), times=None))
    with pytest.raises(Unreachable):
        await client.get(NAMESPACE, "default")

    assert client.requests.answers == {("GET", "429"): 1, ("GET", "200"): 2, ("GET", "<error>"): 1}
    assert 1.0 <= client.requests.throttled_seconds < 2.0
    assert client.requests.seconds["GET"].count == 4
    assert proxy.url.endswith(f"//{client.requests.host}")
