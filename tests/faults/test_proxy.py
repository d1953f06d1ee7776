"""The proxy itself: what a row leaves behind must not disturb the next one (bonny_dev.testing.faults)."""

from __future__ import annotations

import gc
import json
import socket
import threading
import urllib.request
import warnings
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Hold, Notify, Past, Slow, Stall, is_any, is_watch


def asked(proxy: FaultProxy, target: str) -> socket.socket:
    """A connection over which `target` was asked for, and whose answer nobody reads."""
    address = urlsplit(proxy.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=5)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: proxy\r\n\r\n".encode())
    return connection


def end_in_the_middle(sandbox: Sandbox, target: str, fault: Fault | None) -> None:
    """A proxy that ends while many wait for answers."""
    with FaultProxy(sandbox) as proxy:
        if fault is not None:
            proxy.add(fault)
        clients = [asked(proxy, target) for _ in range(20)]
        Sandbox.eventually(lambda: proxy.count(is_any) == len(clients))
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        pytest.param("/readyz", None, id="short-answers"),
        pytest.param("/openapi/v2", None, id="long-answers"),
        pytest.param("/readyz", Fault(Hold(), times=None), id="held-requests"),
        pytest.param("/api/v1/namespaces?watch=true", Fault(Stall(), times=None), id="stalled-watches"),
    ],
)
def test_a_proxy_that_ends_in_the_middle_of_requests_leaves_no_socket_open(
    sandbox: Sandbox, target: str, fault: Fault | None
) -> None:
    """Regression: connections that still said farewell over TLS were reported in the middle of a later row."""
    gc.collect()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        end_in_the_middle(sandbox, target, fault)
        gc.collect()
    assert [str(warning.message) for warning in told if warning.category is ResourceWarning] == []


def test_connections_made_while_a_proxy_ends_are_closed(sandbox: Sandbox) -> None:
    """Regression: asyncio loses what it accepted in the last moment, and a later test failed for it."""
    gc.collect()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(10):
            made: list[socket.socket] = []
            with FaultProxy(sandbox) as proxy:
                _, _, port = proxy.url.rpartition(":")
                caller = threading.Thread(target=connect_until_refused, args=(int(port), made))
                caller.start()
                sandbox.eventually(lambda made=made: len(made) > 10)
            caller.join()
            for connection in made:
                connection.close()
        gc.collect()
    assert [str(warning.message) for warning in told if warning.category is ResourceWarning] == []


def connect_until_refused(port: int, made: list[socket.socket]) -> None:
    with suppress(OSError):
        while True:
            made.append(socket.create_connection(("127.0.0.1", port), timeout=1.0))


def test_a_proxy_whose_server_hangs_ends_and_leaves_no_socket_open(sandbox: Sandbox) -> None:
    gc.collect()
    sandbox.apiserver.pause()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            end_in_the_middle(sandbox, "/readyz", None)
            gc.collect()
    finally:
        sandbox.apiserver.resume()
    assert [str(warning.message) for warning in told if warning.category is ResourceWarning] == []


def test_a_proxy_passes_on_what_is_as_large_as_etcd_takes(sandbox: Sandbox) -> None:
    """Regression: a warning about long bodies became an error, and the error the answer."""
    written: Resource = {
        "metadata": {"name": "as-large-as-etcd-takes", "annotations": {"more": "x" * 20_000}},
        "data": {"text": "x" * 1_040_000},
    }
    with FaultProxy(sandbox) as proxy:
        request = urllib.request.Request(
            f"{proxy.url}/api/v1/namespaces/default/configmaps?dryRun=All",
            data=json.dumps(written).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert json.loads(answer.read())["data"] == written["data"]


def test_a_list_shows_an_older_state_and_a_watch_from_there_all_changes_since(sandbox: Sandbox, clean: None) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    name = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "older", "namespace": "default"}}
    sandbox.apply({**name, "data": {"size": "1"}})
    version = sandbox.request("GET", maps).body["metadata"]["resourceVersion"]
    sandbox.apply({**name, "data": {"size": "2"}})

    with FaultProxy(sandbox) as proxy:
        proxy.add(Fault(Past(version), times=None))
        old = answer_of(f"{proxy.url}{maps}?limit=500")
        proxy.clear()
        new = answer_of(f"{proxy.url}{maps}?limit=500")
        with urllib.request.urlopen(f"{proxy.url}{maps}?watch=true&resourceVersion={version}") as watch:
            event = json.loads(watch.readline())

    assert sizes(old) == ["1"]
    assert sizes(new) == ["2"]
    assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"size": "2"})


def test_a_request_that_is_notified_continues(sandbox: Sandbox) -> None:
    notified = threading.Event()

    with FaultProxy(sandbox) as proxy:
        proxy.add(Fault(Notify(notified.set)))
        answer = answer_of(f"{proxy.url}/api/v1/namespaces/default")

    assert notified.is_set()
    assert answer["metadata"]["name"] == "default"


def test_a_slow_request_continues_after_its_time(sandbox: Sandbox) -> None:
    with FaultProxy(sandbox) as proxy:
        fault = proxy.add(Fault(Slow(0.5)))
        with urllib.request.urlopen(f"{proxy.url}/readyz", timeout=20.0) as answer:
            assert answer.status == 200

        (request,) = proxy.requests
        assert fault.hits == 1
        # It is noted after the answer was sent.
        assert sandbox.eventually(lambda: request.ended) - request.time >= 0.5


def test_only_the_requests_that_are_named_are_reset(sandbox: Sandbox) -> None:
    with FaultProxy(sandbox) as proxy:
        proxy.add(Fault(Hold(), on=lambda request: not request.is_watch, times=None))
        watch, hold = (asked(proxy, f"/api/v1/namespaces{end}") for end in ("?watch=true", ""))
        Sandbox.eventually(lambda: proxy.count(is_any) == 2)
        proxy.cut_all(is_watch)

        with suppress(ConnectionResetError):
            while watch.recv(65_536):
                pass
        assert all(request.ended is None for request in proxy.requests if not request.is_watch)
    watch.close()
    hold.close()


def answer_of(url: str) -> Resource:
    with urllib.request.urlopen(url) as answer:
        found: Resource = json.load(answer)
        return found


def sizes(answer: Resource) -> list[str]:
    return [each["data"]["size"] for each in answer["items"] if each["metadata"]["name"] == "older"]
