"""The console of an operator in a cluster, through the port-forward of a real API server and a stand-in kubelet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny_dev.console import command
from bonny_dev.inside.reading import InCluster, inside_of
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.ports import free_ports
from bonny_dev.why.command import why
from tests.support.kubelet import node
from tests.support.watched import GROUP, TOKEN, operator, watched

NODE = "forwards"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
PODS = "/api/v1/namespaces/watched/pods"


@pytest.fixture(scope="module")
def port(sandbox: Sandbox) -> Iterator[int]:
    """The port of the console of an operator that runs, and a node that forwards to it."""
    with watched(sandbox) as found, node(sandbox, NODE):
        yield found


@pytest.fixture
def pods(sandbox: Sandbox) -> Iterator[Any]:
    """Makes pods of the operator, which are ready."""
    names: list[str] = []

    def make(name: str, *, port: str | None, token: str = TOKEN, on: str = NODE) -> None:
        env = [{"name": "BONNY_CONSOLE_TOKEN", "value": token}]
        env += [] if port is None else [{"name": "BONNY_CONSOLE_PORT", "value": port}]
        container = {"name": "operator", "image": "operator", "env": env, "securityContext": RESTRICTED}
        metadata = {"name": name, "namespace": "watched", "labels": {"app.kubernetes.io/name": "watched"}}
        spec = {"containers": [container], "automountServiceAccountToken": False, **({"nodeName": on} if on else {})}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        answer = sandbox.request("POST", PODS, pod)
        assert answer.status == 201, answer.body
        status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        patch = "application/merge-patch+json"
        assert sandbox.request("PATCH", f"{PODS}/{name}/status", status, content_type=patch).status == 200
        names.append(name)

    yield make
    for each in names:
        remove(sandbox, each)
    sandbox.delete("coordination.k8s.io/v1", "Lease", "watched", namespace="watched")


def remove(sandbox: Sandbox, name: str) -> None:
    sandbox.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")


def leads(sandbox: Sandbox, name: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": name}}
    sandbox.apply([{**lease, "metadata": {"name": "watched", "namespace": "watched"}}])


async def asked(sandbox: Sandbox, path: str = "/overview") -> dict[str, Any]:
    async with (
        Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test") as client,
        inside_of("", client, operator(), "watched") as inside,
    ):
        return await inside.ask(path)


async def test_the_leader_is_reached_through_the_api_server(sandbox: Sandbox, port: int, pods: Any) -> None:
    (nobody,) = free_ports(1)
    pods("a-standby", port=str(nobody))
    pods("b-leader", port=str(port))
    leads(sandbox, "b-leader_5c2f1a90")
    assert (await asked(sandbox))["operator"] == "watched"
    assert (await asked(sandbox, "/nothing"))["problem"] == "pod watched/b-leader answers 404 to /nothing"


async def test_one_connection_serves_many_requests_until_its_pod_is_replaced(
    sandbox: Sandbox, port: int, pods: Any
) -> None:
    pods("first", port=str(port))
    async with (
        Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test") as client,
        InCluster(client, operator(), "watched") as inside,
    ):
        assert (await inside.ask("/overview"))["operator"] == "watched"
        tunnel = inside.tunnel
        assert tunnel is not None
        assert (await inside.ask("/outcomes", since="0"))["whole"]
        assert inside.tunnel is tunnel
        remove(sandbox, "first")
        pods("second", port=str(port))
        await tunnel.close()  # as the kubelet does when the pod ends
        assert (await inside.ask("/overview"))["operator"] == "watched"
        assert inside.tunnel is not tunnel


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"port": None}, "pod watched/x has no port in BONNY_CONSOLE_PORT: docs/how-to/watch-an-operator.md shows how"),
        ({"port": "1"}, "port 1 of pod watched/x is not reached: connection refused"),
        (
            {"port": "8090", "on": ""},
            "the API server does not forward to port 8090 of pod watched/x (400): the pod runs",
        ),
    ],
)
async def test_why_it_is_not_reached_is_one_sentence(
    sandbox: Sandbox, port: int, pods: Any, settings: dict[str, Any], problem: str
) -> None:
    pods("x", **settings)
    found = await asked(sandbox)
    assert found["problem"].startswith(f"the operator's memory is not shown: {problem}")
    assert "\n" not in found["problem"]


async def test_a_wrong_token_is_reported(sandbox: Sandbox, port: int, pods: Any) -> None:
    pods("x", port=str(port), token="another")
    assert (await asked(sandbox))["problem"] == "pod watched/x answers 401 to /overview"


async def test_why_and_top_show_the_memory_of_an_operator_in_a_cluster(
    sandbox: Sandbox, port: int, pods: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pods("x", port=str(port))
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    await why(cluster, operator(), "clocks/late", namespace="watched", everything=False, as_json=True)
    found = {each["question"]: each for each in json.loads(capsys.readouterr().out)["answers"]}
    assert found["turn"]["text"].startswith("it waits: it is not noon yet; its timer ends in ")
    assert f"{GROUP}/v1/namespaces/default/clocks/late/status 200" in found["runs"]["detail"][-1]
    assert found["operator"]["text"].endswith("all 2 streams are in sync")


def test_top_shows_an_operator_in_a_cluster(
    sandbox: Sandbox, port: int, pods: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pods("x", port=str(port))
    assert command.top(Kubeconfig(str(sandbox.kubeconfig)), operator(), namespace="watched", url="", once=True) == 0
    assert capsys.readouterr().out.startswith("watched 1.2.3 test leads\n")
