"""Edges of the pipeline on a real API server: what must not be destroyed, said twice, lost or overtaken."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bonny import Axn, Controller, Owned, Resource
from bonny.api.crd import crds
from bonny.sandbox import Sandbox
from bonny.testing.faults import FaultProxy, Request
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    Thing,
    config_map,
    names,
    operator_of,
    own_namespace,
    spec,
    thing,
)


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    with own_namespace(sandbox) as name:
        yield name


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultProxy]:
    with FaultProxy(sandbox) as made:
        yield made


class Waiting:
    """Lets a handler wait in the middle, in a thread, until the test has done something."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.go_on.wait(10)


# --- nothing is destroyed on stale knowledge --------------------------------------------------------------------------


def test_a_controller_that_knows_only_new_objects_destroys_nothing_when_they_change(
    sandbox: Sandbox, namespace: str
) -> None:
    """Regression: no handler ran, so nothing was registered, so every child was pruned."""

    class Adding(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        async def add(self, axn: Axn[Thing]) -> None:
            for part in axn.spec.parts:
                axn.register_descendant(config_map(part))

    with serving(operator_of(Adding), sandbox.kubeconfig) as at_work:
        sandbox.apply(thing("t1", namespace=namespace, parts=["a", "b"]))
        sandbox.eventually(lambda: names(sandbox, namespace) == {"a", "b"})
        (worker,) = at_work.process.workers
        sandbox.eventually(lambda: worker.handled == 1)

        spec(sandbox, "t1", namespace, size=2)

        sandbox.eventually(lambda: worker.handled >= 2)
        assert names(sandbox, namespace) == {"a", "b"}


def is_the_apply_of_b(request: Request) -> bool:
    return request.method == "PATCH" and request.path.endswith("/configmaps/b")


def deployment(name: str, label: str) -> Resource:
    labels = {"app": label}
    container = {"name": "main", "image": "nginx:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


# --- nothing is lost --------------------------------------------------------------------------------------------------


def watch_of_config_maps(request: Request) -> bool:
    return request.is_watch and request.path.endswith("/configmaps")


# --- steps, threads and cancellations ---------------------------------------------------------------------------------


class PanicException(BaseException):
    """As what extensions in Rust raise: no Exception."""
