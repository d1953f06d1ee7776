"""The memory of reviews and conversions: bounded by the parts of their JSON, and worked on beside the event loop."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny import Operator, Spec, Version
from bonny.api import Model
from bonny.resource import Resource
from bonny.webhooks import Admission, Review, answers, memory
from bonny.webhooks.answers import LARGE_BYTES
from bonny.webhooks.app import MOST_BYTES, WebhookApp
from bonny.webhooks.conversion import Converter
from bonny.webhooks.memory import MOST_MEMORY, Memory, needed
from bonny.webhooks.names import CONVERT
from tests.support.memory import peak
from tests.unit.test_hostile_texts import filled, grows_linearly
from tests.unit.test_webhook_answers import post, response, review_of

MIB = 2**20
# What is left of the pod's 200 MiB beside a process of 80 MiB and what it has received. Estimates are not exact.
MOST_MIB = 100


class Port(Model):
    name: str = ""
    number: int = 80


class ThingSpec(Spec):
    size: int = 1
    ports: list[Port] = []
    by_name: dict[str, Port] = {}
    texts: list[str] = []
    tags: dict[str, str] = {}


class OldSpec(ThingSpec):
    colour: str = ""


class Thing(Version):
    kind = "Thing"
    version = "v1"
    hub = True
    storage = True
    spec: ThingSpec


class OldThing(Version):
    kind = "Thing"
    version = "v1beta1"
    spec: OldSpec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        calls.append(threading.current_thread())
        return resource


class ThingAdmission(Admission[Thing]):
    async def default(self, review: Review[Thing]) -> None:
        review.spec.size = 2
        review.resource["metadata"]["labels"] = {"a": "b"}


calls: list[threading.Thread] = []
OPERATOR = Operator(name="op", group="example.com", crds=[Thing, OldThing], controllers=[ThingAdmission])
MUTATE = "/mutate/thing-admission"


def thing(version: str = "v1", **spec: Any) -> Resource:
    metadata = {"name": "x", "namespace": "default"}
    return {"apiVersion": f"example.com/{version}", "kind": "Thing", "metadata": metadata, "spec": spec}


def review(**spec: Any) -> bytes:
    kind = {"group": "example.com", "version": "v1", "kind": "Thing"}
    return json.dumps(review_of(thing(**spec), kind=kind), separators=(",", ":")).encode()


def conversion(**spec: Any) -> bytes:
    request = {"uid": "1", "desiredAPIVersion": "example.com/v1", "objects": [thing("v1beta1", **spec)]}
    return json.dumps({"request": request}, separators=(",", ":")).encode()


# --- the parts of JSON ------------------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.text('{[:,"\\é') | st.integers(), lambda each: st.lists(each) | st.dictionaries(st.text('":{'), each)
    )
)
def test_what_is_in_texts_is_not_counted_where_it_decides(value: Any) -> None:
    body = json.dumps(value).encode()
    counted = b"".join(part[1] for part in memory._NEXT.finditer(body))

    def parts(value: Any) -> int:
        items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        own = isinstance(value, (dict, list)) + max(len(items) - 1, 0) + len(items) * isinstance(value, dict)
        return own + sum(map(parts, items))

    assert len(counted) == parts(value)


def test_a_text_of_megabytes_that_looks_like_json_is_a_text() -> None:
    assert needed(json.dumps({"a": filled('{"a":[1,2]},', 3 * MIB)}).encode()) < MOST_MEMORY
    assert needed(filled('{"a":[1,2]},', 3 * MIB).encode()) > MOST_MEMORY


@pytest.mark.parametrize("pattern", ["{},", '"aa",', '"', '\\"', "a", '""', '"\\', "1 ", '",{'])
def test_parts_are_counted_in_linear_time(pattern: str) -> None:
    assert grows_linearly(lambda size: needed(filled(pattern, size).encode()), MOST_BYTES)


# --- one budget -------------------------------------------------------------------------------------------------------


async def test_what_does_not_fit_waits_for_the_rest_and_small_requests_do_not_wait() -> None:
    budget, order = Memory(), list[str]()
    go_on = asyncio.Event()

    async def work(name: str, size: int) -> None:
        async with budget.taken(size):
            order.append(name)
            await go_on.wait()

    tasks = [asyncio.create_task(work(name, MOST_MEMORY * of // 10)) for name, of in (("a", 6), ("b", 6), ("c", 4))]
    for _ in range(5):
        await asyncio.sleep(0)
    assert order == ["a", "c"]
    tasks[0].cancel()
    go_on.set()
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["a", "c", "b"]
    async with budget.taken(MOST_MEMORY):
        """All of it is free again."""


async def test_a_review_that_needs_too_much_is_refused_with_its_size_and_the_limit() -> None:
    """Regression: 585 KiB of empty objects, with defaults 4.7 MiB, took 430 MiB and 2 s of the event loop."""
    app = WebhookApp(OPERATOR, None)
    code, headers, body = await post(app, MUTATE, review(ports=[{"name": "", "number": 80}] * 200_000))

    # The API server shows only the message of a Status.
    status = json.loads(body)
    assert (code, status["kind"], headers[b"content-type"]) == (413, "Status", b"application/json")
    assert status["message"] == ("the review of 4687 KiB is too large: it may have 7168 KiB, and need 64 MiB of memory")
    assert app.answers[MUTATE, 413] == 1


async def test_an_object_that_needs_too_much_is_not_converted_and_hides_no_other_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = WebhookApp(OPERATOR, None)
    assert app.converter is not None
    large, small = thing("v1beta1", ports=[{}] * 60_000), thing("v1beta1", size=3)
    request = {"uid": "1", "desiredAPIVersion": "example.com/v1", "objects": [large, small]}

    code, _, body = await post(app, CONVERT, {"request": request})

    first, second = json.loads(body)["response"]["convertedObjects"]
    assert (code, first) == (200, large | {"apiVersion": "example.com/v1"})
    assert (second["apiVersion"], second["spec"]["size"]) == ("example.com/v1", 3)
    assert app.converter.objects["Thing", "lost"] == 1
    assert "default/x" in [getattr(record, "object", "") for record in caplog.records]


async def test_an_object_of_an_unknown_version_that_needs_too_much_is_a_failure() -> None:
    request = {"uid": "1", "desiredAPIVersion": "example.com/v7", "objects": [thing(ports=[{}] * 60_000)]}
    _, body = await Converter([Thing, OldThing], "example.com").answer(json.dumps({"request": request}).encode())

    assert json.loads(body)["response"]["result"]["status"] == "Failure"


# --- the event loop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("large", [False, True])
async def test_large_requests_are_worked_on_in_a_thread(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    patched = list[threading.Thread]()
    original = answers.patch

    def noted(*arguments: Any) -> Any:
        patched.append(threading.current_thread())
        return original(*arguments)

    monkeypatch.setattr(answers, "patch", noted)
    app, texts = WebhookApp(OPERATOR, None), ["a" * LARGE_BYTES] if large else []
    calls.clear()

    _, _, reviewed = await post(app, MUTATE, review(texts=texts))
    _, _, converted = await post(app, CONVERT, conversion(texts=texts))

    assert response(reviewed)["allowed"]
    assert json.loads(converted)["response"]["convertedObjects"][0]["spec"]["texts"] == texts
    assert [thread is threading.main_thread() for thread in patched + calls[:1]] == [not large] * 2


def test_a_default_of_one_item_among_many_equal_ones_takes_linear_time() -> None:
    """Regression: 100,000 ports took 38 s, for items were looked up in a list."""

    def work(size: int) -> None:
        class Changes(Admission[Thing]):
            async def default(self, review: Review[Thing]) -> None:
                review.spec.ports.append(Port())
                for each in review.spec.ports[: size // 2]:
                    each.number = 81

        app = WebhookApp(Operator(name="op", group="example.com", controllers=[Changes]), None)
        assert asyncio.run(post(app, "/mutate/changes", review(ports=[{"name": "", "number": 80}] * size)))[0] == 200

    assert grows_linearly(work, 32_000)


# --- the process ------------------------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[int], Resource]] = {
    "empty objects": lambda n: {"ports": [{}] * n},
    "objects": lambda n: {"ports": [{"name": "", "number": 80}] * n},
    "a mapping of objects": lambda n: {"by_name": {str(i): {"name": "", "number": 80} for i in range(n)}},
    "a mapping": lambda n: {"tags": {str(i): "" for i in range(n)}},
    "texts": lambda n: {"texts": ["aa"] * n},
    "one text": lambda n: {"texts": ["aaaa" * n]},
}


# Each takes two seconds of CPU; of each sort, one is enough for each commit.
QUICK = "a mapping of objects"
REQUESTS = [
    pytest.param(request, shape, id=f"{sort} of {name}", marks=() if name == QUICK else pytest.mark.slow)
    for sort, request in (("review", review), ("conversion", conversion))
    for name, shape in SHAPES.items()
]


@pytest.mark.parametrize(("request_", "shape"), REQUESTS)
def test_the_largest_request_of_any_shape_fits_into_the_pod(
    request_: Callable[..., bytes], shape: Callable[[int], Resource], tmp_path: Path
) -> None:
    """In a process of its own, whose memory nothing else has used."""
    each = max(needed(request_(**shape(10_000))) / MOST_MEMORY, len(request_(**shape(10_000))) / MOST_BYTES) / 10_000
    file = tmp_path / "body"
    file.write_bytes(request_(**shape(int(0.97 / each))))
    script = (
        f"from tests.unit.test_webhook_memory import *; print(asyncio.run(growth(Path({str(file)!r}).read_bytes())))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert 10 < float(done.stdout) < MOST_MIB


async def growth(body: bytes) -> float:
    """MiB that the answer to it adds to the peak."""
    app = WebhookApp(OPERATOR, None)
    for path, small in ((MUTATE, review()), (CONVERT, conversion())):
        assert (await post(app, path, small))[0] == 200
    before = peak(os.getpid())
    assert (await post(app, CONVERT if b"desiredAPIVersion" in body else MUTATE, body))[0] == 200
    return peak(os.getpid()) - before
