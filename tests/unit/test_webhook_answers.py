"""The answers of admission webhooks: each request has one in time, whatever the bytes and whatever handlers do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny import Kind, Operator, Resource, Scope, Spec, Version
from bonny.calling import HANDLER_THREAD
from bonny.client import Client
from bonny.errors import InvalidObject
from bonny.telemetry.logging import _add_fields
from bonny.telemetry.prometheus import exposition
from bonny.webhooks import Admission, Denied, Review, answers
from bonny.webhooks.app import WebhookApp
from bonny.webhooks.metrics import families
from bonny_dev import testing
from bonny_dev.crd.schema import structural
from tests.support.raising import RAISED, RAISED_ON_THE_LOOP, SECRET
from tests.support.specs import values
from tests.support.virtual import Clock
from tests.support.waiting import until

GARBAGE = st.binary(max_size=40) | st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
).map(lambda value: json.dumps(value).encode())


class WidgetSpec(Spec):
    """A size."""

    size: int | None = None
    colours: list[str] = []
    depth: dict[str, float] = {}
    weight: float | None = None


class Widget(Version):
    """A thing of some size."""

    kind = "Widget"
    version = "v1"
    group = "example.com"
    spec: WidgetSpec


class WidgetAdmission(Admission[Widget]):
    def default(self, review: Review[Widget]) -> None:
        review.spec.size = review.spec.size or 3

    async def validate(self, review: Review[Widget]) -> None:
        if (review.spec.size or 0) % 2:
            raise Denied("must be even", field="spec.size")

    async def validate_delete(self, review: Review[Widget]) -> None:
        if review.spec.size == 4:
            raise Denied("is kept", forbidden=True)


def widget(**spec: Any) -> Resource:
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def app_of(*admissions: type[Admission[Any]]) -> WebhookApp:
    return WebhookApp(Operator(name="op", group="example.com", controllers=admissions), cast("Client", None))


def review_of(resource: Resource | None, operation: str = "CREATE", **fields: Any) -> Resource:
    request = {
        "uid": "1",
        "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
        "name": "w",
        "namespace": "default",
        "operation": operation,
        "userInfo": {},
        "object": resource,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | fields}


async def post(
    app: WebhookApp, path: str, *body: bytes | Resource, method: str = "POST"
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of the answer; several bodies are the parts of one."""
    chunks = [chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode() for chunk in body]
    messages = iter([{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks])
    sent: list[Any] = []

    async def receive() -> Resource:
        return next(messages, {"type": "http.request"})

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "path": path}, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def response(body: bytes) -> Resource:
    answer = json.loads(body)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "1"
    return cast("Resource", answer["response"])


ALLOWED = {"uid": "1", "allowed": True, "warnings": [], "auditAnnotations": {}}
VALIDATE, MUTATE = "/validate/widget-admission", "/mutate/widget-admission"


# --- requests ---------------------------------------------------------------------------------------------------------


async def test_only_posts_to_the_paths_of_webhooks_are_answered() -> None:
    app = app_of(WidgetAdmission)
    for path, method, status in (("/", "POST", 404), ("/mutate/other", "GET", 404), (VALIDATE, "GET", 400)):
        code, headers, body = await post(app, path, b"", method=method)
        assert code == status
        assert int(headers[b"content-length"]) == len(body)


@given(GARBAGE)
async def test_a_body_that_is_not_a_review_is_refused(body: bytes) -> None:
    code, _, text = await post(app_of(WidgetAdmission), MUTATE, body)
    assert (code, text) == (400, b"the body is not an AdmissionReview of admission.k8s.io/v1")


@pytest.mark.parametrize(
    ("review", "text"),
    [
        ({**review_of(widget()), "apiVersion": "admission.k8s.io/v1beta1"}, b"the body is not an AdmissionReview of"),
        (review_of(None), b"a review of CREATE needs an object"),
        (review_of(widget(), "DELETE"), b"a review of DELETE needs an object"),
        (review_of(widget(), "CONNECT"), b"the body is not an AdmissionReview"),
        ({**review_of(widget()), "kind": "ConversionReview"}, b"the body is not an AdmissionReview"),
    ],
)
async def test_a_review_that_cannot_be_answered_is_refused(review: Resource, text: bytes) -> None:
    code, _, body = await post(app_of(WidgetAdmission), VALIDATE, review)
    assert code == 400
    assert body.startswith(text)


async def test_a_review_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":' + b"[" * 50_000
    assert (await post(app_of(WidgetAdmission), MUTATE, deep))[0] == 400


async def test_a_body_may_come_in_parts() -> None:
    text = json.dumps(review_of(widget(size=2))).encode()
    code, headers, body = await post(app_of(WidgetAdmission), VALIDATE, text[:7], text[7:90], text[90:])
    assert (code, headers[b"content-type"]) == (200, b"application/json")
    assert response(body) == ALLOWED


async def test_a_client_that_goes_away_gets_nothing() -> None:
    async def receive() -> Resource:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pytest.fail(f"sent {message}")

    await app_of(WidgetAdmission)({"path": MUTATE, "method": "POST"}, receive, send)


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_a_default_is_a_patch_of_its_field_alone() -> None:
    reviewed = await testing.review(WidgetAdmission, widget(odd=1.0), operation="CREATE")
    assert reviewed.patch == [{"op": "add", "path": "/spec/size", "value": 3}]
    assert reviewed.resource == widget(odd=1.0, size=3)


async def test_a_refusal_reads_like_an_error_of_the_schema() -> None:
    _, _, body = await post(app_of(WidgetAdmission), VALIDATE, review_of(widget(size=7)))
    cause = {"reason": "FieldValueInvalid", "field": "spec.size", "message": "Invalid value: must be even"}
    details = {"group": "example.com", "kind": "Widget", "name": "w", "causes": [cause]}
    message = 'Widget "w" is invalid: spec.size: Invalid value: must be even'
    status = {"code": 422, "reason": "Invalid", "message": message, "details": details}
    assert response(body) == ALLOWED | {"allowed": False, "status": status}


async def test_all_refusals_are_in_one_answer() -> None:
    class Refuses(Admission[Widget]):
        def validate(self, review: Review[Widget]) -> None:
            review.deny("must be even", field="spec.size")
            review.deny("too many in this namespace")
            raise Denied("must be blue", field="spec.colours[0]")

    reviewed = await testing.review(Refuses, widget())
    assert reviewed.causes == (
        ("spec.size", "Invalid value: must be even"),
        ("Widget", "Invalid value: too many in this namespace"),
        ("spec.colours[0]", "Invalid value: must be blue"),
    )
    assert (reviewed.code, reviewed.allowed) == (422, False)


async def test_a_refusal_for_the_user_is_forbidden() -> None:
    reviewed = await testing.review(WidgetAdmission, widget(size=4), operation="DELETE")
    assert (reviewed.code, reviewed.message, reviewed.causes) == (403, "is kept", ())


async def test_a_forbidden_refusal_beside_an_invalid_value_is_answered_as_forbidden() -> None:
    class Refuses(Admission[Widget]):
        def validate(self, review: Review[Widget]) -> None:
            review.deny("must be even", field="spec.size")
            review.deny("only admins may resize it", forbidden=True)

    reviewed = await testing.review(Refuses, widget())
    assert (reviewed.code, reviewed.message) == (403, "must be even; only admins may resize it")


async def test_default_may_refuse_and_then_changes_nothing() -> None:
    class Refuses(Admission[Widget]):
        def default(self, review: Review[Widget]) -> None:
            review.spec.size = 8
            review.deny("no")

    reviewed = await testing.review(Refuses, widget())
    assert (reviewed.code, reviewed.patch) == (422, [])


async def test_handlers_see_who_asks_and_for_what() -> None:
    seen: list[Any] = []

    class Sees(Admission[Widget]):
        subresources = ("status",)

        async def validate(self, review: Review[Widget]) -> None:
            seen.append((review.user.name, review.user.groups, review.operation, review.dry_run, review.subresource))
            seen.append((review.name, review.namespace, review.old_spec.size, review.spec.size))

    reviewed = await testing.review(
        Sees, widget(size=2), old=widget(size=1), user="joe", groups=["a"], dry_run=True, subresource="status"
    )
    assert reviewed.allowed
    assert seen == [("joe", ("a",), "UPDATE", True, "status"), ("w", "default", 1, 2)]


async def test_warnings_and_notes_are_what_the_api_server_passes_on() -> None:
    class Warns(Admission[Widget]):
        def validate(self, review: Review[Widget]) -> None:
            review.warn("two\nlines")
            review.warn("tab\there \x00 \ud800")
            review.note("size", cast("str", 3))

    reviewed = await testing.review(Warns, widget())
    assert reviewed.warnings == ["two lines", "tab here    "]
    assert reviewed.notes == {"size": "3"}


async def test_an_object_that_does_not_fit_the_schema_is_left_to_the_api_server() -> None:
    reviewed = await testing.review(WidgetAdmission, widget(size="big"))
    assert (reviewed.code, reviewed.patch, reviewed.message) == (422, [], "spec.size: must be of type integer")


async def test_a_kind_of_another_group_is_not_read_as_our_own() -> None:
    """Regression: its name and version are those of our kind, so its spec was read by the class of ours."""
    seen: list[object] = []

    class Both(Admission[Any]):
        resource = (Widget, Kind("other.example.org/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED))

        def default(self, review: Review[Any]) -> None:
            seen.append(type(review.spec))

        async def validate(self, review: Review[Any]) -> None:
            seen.append(type(review.spec))

    foreign = widget(size="big") | {"apiVersion": "other.example.org/v1"}

    assert (await testing.review(Both, foreign)).allowed
    assert (await testing.review(Both, widget(size=2))).allowed
    assert seen == [dict, dict, WidgetSpec, WidgetSpec]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", ["a float", "a mapping", "an object"])
async def test_a_number_that_json_does_not_have_is_an_error_of_the_handler(
    number: float, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: the patch said null, which the API server dropped, or refused as a mistake of the user."""

    class Odd(Admission[Widget]):
        def default(self, review: Review[Widget]) -> None:
            if place == "a float":
                review.spec.weight = number
            elif place == "a mapping":
                review.spec.depth["a"] = number
            else:
                review.resource["spec"]["odd"] = ({"a": number},)

    reviewed = await testing.review(Odd, widget(depth={"a": 1}, weight=None))

    assert (reviewed.code, reviewed.patch) == (500, [])
    assert str(number) not in reviewed.message
    where = {"a float": "spec.weight", "a mapping": "spec.depth.a", "an object": "spec.odd.0.a"}[place]
    (said,) = (vars(record)["error"] for record in caplog.records if record.message == "webhook failed")
    assert f"default set {where} to {number}, which JSON does not have" in said


@pytest.mark.parametrize("method", ["default", "validate"])
async def test_another_object_that_does_not_fit_is_an_error(method: str) -> None:
    def reads(_: object, review: Review[Widget]) -> None:
        Widget.spec_of(widget(size="big"))

    reviewed = await testing.review(type("Reads", (Admission,), {"resource": Widget, method: reads}), widget())
    assert reviewed.code == 500


async def test_requests_of_a_handler_are_answered_by_the_test_and_need_rules() -> None:
    class Reads(Admission[Widget]):
        async def validate(self, review: Review[Widget]) -> None:
            others = await review.client.list(Widget, namespace=review.namespace)
            if len(others) > 1:
                raise Denied("one is enough")

    answers = {"list widgets.example.com default": [widget(), widget()]}
    with pytest.raises(AssertionError, match="Reads may not send"):
        await testing.review(Reads, widget(), answers=answers)
    Reads.rules = ({"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list"]},)
    assert (await testing.review(Reads, widget(), answers=answers)).causes == (
        ("Widget", "Invalid value: one is enough"),
    )


class AllAllowed(Admission[Any]):
    resource = Widget
    operations = ("CREATE", "UPDATE")
    subresources = ("status",)

    def default(self, review: Review[Any]) -> None:
        _ = review.spec

    async def validate(self, review: Review[Any]) -> None:
        _ = review.resource, review.user

    async def validate_delete(self, review: Review[Any]) -> None:
        if review.resource != review.old:
            raise Denied("a deletion shows another object")


@given(
    st.data(),
    st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    st.sampled_from([{"name": "w"}, {"generateName": "w-"}, {"name": "w", "labels": None, "managedFields": []}]),
    st.sampled_from(["", "status", "scale"]),
    st.sampled_from(["validate", "mutate"]),
)
async def test_every_review_of_an_object_is_answered(
    data: st.DataObject, operation: str, metadata: Resource, subresource: str, action: str
) -> None:
    spec = data.draw(values(structural(WidgetSpec, where="spec")))
    resource = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
    new, old = (None, resource) if operation == "DELETE" else (resource, None if operation == "CREATE" else resource)
    fields = {"oldObject": old, "subResource": subresource, "dryRun": None, "requestKind": {}, "options": None}
    review = review_of(new, operation, **fields, name=metadata.get("name", ""))
    code, _, body = await post(app_of(AllAllowed), f"/{action}/all-allowed", review)
    assert code == 200
    assert response(body) == ALLOWED


# --- what handlers raise ----------------------------------------------------------------------------------------------


def failing(raises: Callable[[], None], *, on_the_loop: bool) -> type[Admission[Any]]:
    """A webhook all of whose handlers change the object, then fail."""

    def fails(_: object, review: Review[Widget]) -> None:
        review.spec.size = 99
        raises()

    async def fails_on_the_loop(_: object, review: Review[Widget]) -> None:
        review.spec.size = 99
        raises()
        await asyncio.sleep(0)

    method = fails_on_the_loop if on_the_loop else fails
    return type("Fails", (Admission,), {"resource": Widget, "default": method, "validate_delete": method})


async def _is_a_500(admission: type[Admission[Any]], caplog: pytest.LogCaptureFixture) -> None:
    for operation in ("CREATE", "DELETE"):
        app, stored = app_of(admission), widget(size=1)
        path = "/validate/fails" if operation == "DELETE" else "/mutate/fails"
        code, _, body = await post(app, path, review_of(widget(), operation, oldObject=stored))
        assert (code, body) == (500, b"Fails of op failed: see the log of the operator")
        assert app.reviewers[0].reviews[path, operation, "error"] == 1
        record = caplog.records[-1]
        assert (record.name, record.getMessage(), record.levelname) == ("bonny.webhooks", "webhook failed", "WARNING")
        fields = {"webhook": "Fails", "operation": operation, "object": "default/w"}
        assert {name: vars(record)[name] for name in fields} == fields
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


@pytest.mark.parametrize("raises", RAISED_ON_THE_LOOP.values(), ids=RAISED_ON_THE_LOOP)
async def test_what_an_async_handler_raises(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    await _is_a_500(failing(raises, on_the_loop=True), caplog)


@pytest.mark.parametrize("raises", RAISED.values(), ids=RAISED)
async def test_what_a_def_handler_raises(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    await _is_a_500(failing(raises, on_the_loop=False), caplog)


async def test_validate_fails_for_an_object_that_it_cannot_read() -> None:
    """To allow the write would skip the check. Only `default` runs before the API server checks the schema."""
    code, _, body = await post(app_of(WidgetAdmission), VALIDATE, review_of(widget(size="big")))
    assert (code, body) == (500, b"WidgetAdmission of op failed: see the log of the operator")


async def test_default_fails_for_an_error_of_its_own_after_it_could_not_read_the_object() -> None:
    class Goes(Admission[Widget]):
        def default(self, review: Review[Widget]) -> None:
            with contextlib.suppress(InvalidObject):
                _ = review.spec
            raise ValueError("of its own")

    assert (await post(app_of(Goes), "/mutate/goes", review_of(widget(size="big"))))[0] == 500


async def test_a_line_that_a_handler_logs_says_for_which_webhook_and_object(caplog: pytest.LogCaptureFixture) -> None:
    """An object that gets its name from `generateName` has none yet."""

    class Logs(Admission[Widget]):
        async def validate(self, review: Review[Widget]) -> None:
            logging.getLogger("mine").warning("looked at it")

    caplog.handler.addFilter(_add_fields)
    for name in ("w", ""):
        await post(app_of(Logs), "/validate/logs", review_of(widget(), name=name))

    lines = [vars(record) for record in caplog.records if record.name == "mine"]
    assert [(line["webhook"], line["operation"], line["object"]) for line in lines] == [
        ("Logs", "CREATE", "default/w"),
        ("Logs", "CREATE", "default/(generated)"),
    ]


async def test_an_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    await _is_a_500(failing(RAISED["Exception"], on_the_loop=True), caplog)
    error = caplog.records[-1].exc_info
    assert error is not None
    assert str(error[1]) == SECRET


async def test_an_answer_that_cannot_be_written_is_an_error_of_the_handler() -> None:
    class Odd(Admission[Widget]):
        def default(self, review: Review[Widget]) -> None:
            review.resource["spec"]["odd"] = object()

        def validate(self, review: Review[Widget]) -> None:
            review.note("key", "\ud800")

    assert (await testing.review(Odd, widget())).code == 500
    assert (await testing.review(type("Odder", (Odd,), {"default": Admission.default}), widget())).code == 500


async def test_a_connection_that_is_cancelled_cancels_its_handler() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    class Waits(Admission[Widget]):
        async def validate(self, review: Review[Widget]) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    posted = asyncio.create_task(post(app_of(Waits), "/validate/waits", review_of(widget())))
    await began.wait()
    posted.cancel()
    with pytest.raises(asyncio.CancelledError):
        await posted
    assert ended.is_set()


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout of 5 s leaves a handler 50 ms."""
    monkeypatch.setattr(answers, "SPARE_SECONDS", 4.95)


async def test_slow_reviews_do_not_delay_others() -> None:
    go, waiting = asyncio.Event(), asyncio.Semaphore(0)

    class Slow(Admission[Widget]):
        async def validate(self, review: Review[Widget]) -> None:
            if review.spec.size == 1:
                waiting.release()
                await go.wait()

    app = app_of(Slow)
    slow = [asyncio.create_task(post(app, "/validate/slow", review_of(widget(size=1)))) for _ in range(2)]
    for _ in slow:
        await waiting.acquire()
    assert (await post(app, "/validate/slow", review_of(widget(size=2))))[0] == 200
    assert not any(task.done() for task in slow)
    go.set()
    assert [code for code, *_ in await asyncio.gather(*slow)] == [200, 200]


@pytest.mark.usefixtures("_short_timeouts")
async def test_an_async_handler_is_cancelled_at_its_timeout() -> None:
    cancelled: list[str] = []

    class Hangs(Admission[Widget]):
        async def validate(self, review: Review[Widget]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(review.name)

    app = app_of(Hangs)
    code, _, body = await post(app, "/validate/hangs", review_of(widget()))
    assert (code, body) == (500, b"Hangs of op did not answer within 0.05 s: see the log of the operator")
    assert cancelled == ["w"]
    assert app.reviewers[0].reviews["/validate/hangs", "CREATE", "timeout"] == 1


async def test_a_handler_has_half_a_second_less_than_the_api_server_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    async def call(*_: object, seconds: float) -> None:
        given.append(seconds)

    monkeypatch.setattr(answers, "call", call)
    await post(app_of(WidgetAdmission), VALIDATE, review_of(widget()))
    assert given == [4.5]


@pytest.mark.parametrize(("takes", "codes", "expected"), [(2.0, [200, 200], [4.5, 2.5]), (60.0, [200, 500], [4.5])])
def test_the_time_that_a_review_waits_for_a_thread_is_part_of_its_timeout(
    takes: float, codes: list[int], expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the API server would give up before the answer comes. The first review has the only thread."""
    given: list[float] = []

    class Threaded(Admission[Widget]):
        def validate(self, review: Review[Widget]) -> None: ...

    async def call(*_: object, seconds: float, thread: str) -> None:
        given.append(seconds)
        await asyncio.sleep(takes)

    async def main() -> list[int]:
        app = app_of(Threaded)
        posts = (post(app, "/validate/threaded", review_of(widget())) for _ in range(2))
        return [code for code, *_ in await asyncio.gather(*posts)]

    monkeypatch.setattr(answers, "THREADS", 1)
    monkeypatch.setattr(answers, "call", call)
    assert Clock(monkeypatch).run(main) == codes
    assert given == [pytest.approx(seconds) for seconds in expected]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Open at the end at the latest."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.usefixtures("_short_timeouts")
async def test_threads_that_hang_are_bounded_and_hold_up_no_other_webhook(gate: threading.Event) -> None:
    class Hangs(Admission[Widget]):
        def validate(self, review: Review[Widget]) -> None:
            gate.wait()

    app, before = app_of(Hangs, WidgetAdmission), threading.active_count()
    for _ in range(2):
        hanging = [post(app, "/validate/hangs", review_of(widget())) for _ in range(answers.THREADS + 8)]
        assert {code for code, *_ in await asyncio.gather(*hanging)} == {500}
        assert threading.active_count() == before + answers.THREADS
    # A replica that lost its lease ends itself while threads of this name run.
    assert HANDLER_THREAD not in {thread.name for thread in threading.enumerate()}
    assert (await post(app, MUTATE, review_of(widget())))[0] == 200
    gate.set()
    await until(lambda: threading.active_count() == before)
    assert (await post(app, "/validate/hangs", review_of(widget())))[0] == 200
    assert app.answers == {
        ("/validate/hangs", 200): 1,
        ("/validate/hangs", 500): 2 * (answers.THREADS + 8),
        (MUTATE, 200): 1,
        (VALIDATE, 200): 0,
    }


# --- many -------------------------------------------------------------------------------------------------------------


async def test_ten_thousand_reviews_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Some(Admission[Widget]):
        async def default(self, review: Review[Widget]) -> None:
            review.spec.size = (review.spec.size or 0) + 1
            if review.spec.size % 10 == 0:
                raise ValueError
            if review.spec.size % 10 == 1:
                raise Denied("no")

    monkeypatch.setattr(answers.log, "disabled", True)
    app = app_of(Some)
    bodies = [json.dumps(review_of(widget(size=size), name=f"w{size}")).encode() for size in range(100)]

    async def reviews(times: int) -> int:
        for _ in range(times):
            for body in bodies:
                await app.routes["/mutate/some"](body)
        gc.collect()
        return len(gc.get_objects())

    before = await reviews(2)
    assert await reviews(100) - before < 100


async def test_a_scrape_shows_how_the_api_server_was_answered() -> None:
    app = app_of(WidgetAdmission)
    for size in (2, 3, 5):
        await post(app, VALIDATE, review_of(widget(size=size)))
    await post(app, VALIDATE, b"")
    await post(app, "/somewhere", b"")
    shown = exposition(families(app))[0].decode()
    for sample in (
        f'controller_runtime_webhook_requests_total{{code="200",webhook="{VALIDATE}"}} 3.0',
        f'controller_runtime_webhook_requests_total{{code="400",webhook="{VALIDATE}"}} 1.0',
        f'controller_runtime_webhook_latency_seconds_count{{webhook="{VALIDATE}"}} 4.0',
        f'bonny_webhook_reviews_total{{operation="CREATE",outcome="denied",webhook="{VALIDATE}"}} 2.0',
        f'bonny_webhook_reviews_total{{operation="UPDATE",outcome="error",webhook="{MUTATE}"}} 0.0',
    ):
        assert sample in shown
    assert "somewhere" not in shown


def test_every_series_is_there_from_the_start() -> None:
    app = app_of(WidgetAdmission)
    written = [(MUTATE, operation) for operation in ("CREATE", "UPDATE")]
    checked = [(VALIDATE, operation) for operation in ("CREATE", "UPDATE", "DELETE")]
    assert set(app.reviewers[0].reviews) == {
        (*called, outcome) for called in (*written, *checked) for outcome in ("allowed", "denied", "error", "timeout")
    }


async def test_a_refusal_is_one_whatever_its_texts_are() -> None:
    """Regression: half of a surrogate pair was a 500, which the failure policy Ignore turns into a yes."""

    class Odd(Admission[Widget]):
        async def validate(self, review: Review[Widget]) -> None:
            review.deny(cast("str", ValueError(3)), field=cast("str", 5))
            raise Denied("bad \ud800", field="spec.\udfff")

    reviewed = await testing.review(Odd, widget())

    assert reviewed.causes == (("5", "Invalid value: 3"), ("spec.?", "Invalid value: bad ?"))
