"""Workloads: creations that two webhooks review, and what they cost.

The creations are dry runs, so that the disk of the machine has no part in the times. A workload ends with an error when
a default is missing, or when an object that must be refused is not.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.core.workloads import DEFINITION
from bench.harness import traffic
from bench.harness.contestants import BONNY, BONNY_UVLOOP, CONTROLLER_RUNTIME, Contestant
from bench.harness.measure import cpu_seconds, resident_megabytes
from bench.harness.report import Figures, Outcome, on_both_loops
from bench.harness.rounds import Bench, interleaved
from bench.harness.run import Run
from bench.harness.traffic import PATH
from bench.pipeline.workloads import percentiles
from bonny.resource import Resource
from bonny.tls.certificates import issue
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.ports import free_ports

from .bonny_operator import WidgetAdmission

__all__ = ["burst", "steady"]

CPU_PER_REVIEW: Final = "CPU us/review"
P50: Final = "p50 ms"
P99: Final = "p99 ms"
RESIDENT: Final = "RSS MB"
PER_SECOND: Final = 100.0
REVIEWS: Final = 2
"""Of one creation: `default` and `validate`."""

DRY_RUN: Final = f"{PATH}?dryRun=All"
NAME: Final = "bench"
KINDS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
PATHS: Final[dict[str, tuple[str, str]]] = {
    CONTROLLER_RUNTIME: ("/mutate-example-com-v1-widget", "/validate-example-com-v1-widget"),
    BONNY: (WidgetAdmission.path("mutate"), WidgetAdmission.path("validate")),
    BONNY_UVLOOP: (WidgetAdmission.path("mutate"), WidgetAdmission.path("validate")),
}


def steady(bench: Bench) -> Outcome:
    """Creations at a steady rate: the time of each, and CPU of the contestant for each review."""
    traffic.define(bench.sandbox, DEFINITION)
    goals = (
        *on_both_loops(CPU_PER_REVIEW, stock=1.0, uvloop=1.0, against=CONTROLLER_RUNTIME),
        *on_both_loops(P99, stock=1.2, uvloop=1.2, against=CONTROLLER_RUNTIME),
    )

    def measured(contestant: Contestant) -> Figures:
        with _reviewing(bench, contestant) as run:
            spent = cpu_seconds(run.pid)
            run.mark()
            seconds = asyncio.run(_at_a_rate(bench))
            run.mark()
            spent = cpu_seconds(run.pid) - spent
            p50, p99 = percentiles(seconds)
            return {
                CPU_PER_REVIEW: spent / bench.objects / REVIEWS * 1e6,
                P50: p50 * 1e3,
                P99: p99 * 1e3,
                RESIDENT: resident_megabytes(run.pid),
            }

    return Outcome("steady", bench.objects, interleaved(bench, measured), goals)


def burst(bench: Bench) -> Outcome:
    """Creations as fast as the API server takes them: CPU of the contestant for each review."""
    traffic.define(bench.sandbox, DEFINITION)
    goals = on_both_loops(CPU_PER_REVIEW, stock=1.0, uvloop=1.0, against=CONTROLLER_RUNTIME)

    def measured(contestant: Contestant) -> Figures:
        with _reviewing(bench, contestant) as run:
            spent, began = cpu_seconds(run.pid), time.monotonic()
            run.mark()
            asyncio.run(traffic.send_all(bench.sandbox, "POST", ((DRY_RUN, body) for body in _bodies(bench))))
            run.mark()
            seconds, spent = time.monotonic() - began, cpu_seconds(run.pid) - spent
            return {
                CPU_PER_REVIEW: spent / bench.objects / REVIEWS * 1e6,
                "creations/s": bench.objects / seconds,
                RESIDENT: resident_megabytes(run.pid),
            }

    return Outcome("burst", bench.objects, interleaved(bench, measured), goals)


# --- parts of them ----------------------------------------------------------------------------------------------------


def _bodies(bench: Bench) -> Iterator[bytes]:
    return (traffic.widget(f"w{number}", {"size": 2 * number}) for number in range(bench.objects))


async def _at_a_rate(bench: Bench) -> list[float]:
    """Create these at a steady rate; returns the seconds that each took."""
    seconds: list[float] = []
    began = time.monotonic()
    async with traffic.session(bench.sandbox) as http, asyncio.TaskGroup() as group:

        async def one(number: int, body: bytes) -> None:
            # By the clock, not by the answer before: a slow answer does not make the rate lower.
            await asyncio.sleep(began + number / PER_SECOND - time.monotonic())
            sent = time.monotonic()
            await traffic.send(http, "POST", DRY_RUN, body)
            seconds.append(time.monotonic() - sent)

        for number, body in enumerate(_bodies(bench)):
            group.create_task(one(number, body))
    return seconds


@contextmanager
def _reviewing(bench: Bench, contestant: Contestant) -> Iterator[Run]:
    """A contestant whose webhooks are registered and have answered once."""
    folder = bench.guard.folder / f"certificate-{time.monotonic_ns()}"
    folder.mkdir()
    issued = issue(["localhost"], addresses=["127.0.0.1"])
    (folder / "tls.crt").write_bytes(issued.certificate)
    (folder / "tls.key").write_bytes(issued.key)
    (port,) = free_ports(1)
    settings = {
        **dict.fromkeys(("BENCH_WEBHOOK_PORT", "BONNY_WEBHOOK_PORT"), str(port)),
        **dict.fromkeys(("BENCH_CERTIFICATE", "BONNY_WEBHOOK_CERTIFICATE"), str(folder)),
    }
    with bench.start(contestant, objects=bench.objects, settings=settings) as run:
        _register(bench.sandbox, PATHS[contestant.name], port=port, authority=issued.ca)
        bench.sandbox.eventually(lambda: _works(bench.sandbox))
        yield run
    for kind in KINDS:
        bench.sandbox.request("DELETE", f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/{NAME}")


def _register(sandbox: Sandbox, paths: Sequence[str], *, port: int, authority: bytes) -> None:
    sandbox.apply([_configuration(kind, path, port, authority) for kind, path in zip(KINDS, paths, strict=True)])


def _configuration(kind: str, path: str, port: int, authority: bytes) -> Resource:
    bundle = base64.b64encode(authority).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": "widgets.bench.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle},
                "rules": [
                    {
                        "apiGroups": ["example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["widgets"],
                    }
                ],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 10,
            }
        ],
    }


def _works(sandbox: Sandbox) -> bool:
    """Whether an even size gets its default, and an odd one is refused."""
    even, odd = (
        sandbox.request("POST", DRY_RUN, json.loads(traffic.widget("look", {"size": size}))) for size in (2, 3)
    )
    return even.status == 201 and even.body["spec"].get("text") == "size 2" and odd.status == 422
