"""Edges of the pipeline on a real API server: what must not be destroyed, said twice, lost or overtaken."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from typing import Any, ClassVar

import pytest

from bonny import Axn, Controller, Kind, Owned, Resource, Retry, Terminal, compat
from bonny.core import own_writes
from bonny.engine.worker import Worker
from bonny.kinds import Related
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Hold, ProxiedRequest, Respond, Stall
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    PartsController,
    Thing,
    config_map,
    deployment,
    names,
    operator_of,
    own_namespace,
    path_of,
    spec,
    thing,
    until_reconciled,
)


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


def watch_of_config_maps(request: ProxiedRequest) -> bool:
    return request.is_watch and request.path.endswith("/configmaps")


def watch_of_things(request: ProxiedRequest) -> bool:
    return request.is_watch and request.path.endswith("/things")


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


def is_the_apply_of_b(request: ProxiedRequest) -> bool:
    return request.method == "PATCH" and request.path.endswith("/configmaps/b")


def test_nothing_is_pruned_for_an_owner_whose_annotations_want_it_by_now(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """Regression: the owner counted as what the handler saw because its generation was the same."""

    class Annotated(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            for part in axn.resource["metadata"]["annotations"]["parts"].split():
                axn.register_descendant(config_map(part, size=str(axn.spec.size)))

    def annotate(parts: str) -> None:
        change = {"metadata": {"annotations": {"parts": parts}}}
        sandbox.request("PATCH", path_of("t1", namespace), change, content_type=MERGE)

    with serving(operator_of(Annotated), proxy.kubeconfig):
        made = thing("t1", namespace=namespace)
        made["metadata"]["annotations"] = {"parts": "a b"}
        sandbox.apply(made)
        until_reconciled(sandbox, "t1", namespace)
        uid = (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["uid"]
        hold = Hold()
        held = proxy.add(Fault(hold, on=is_the_apply_of_b))
        made["metadata"]["annotations"] = {"parts": "b"}
        made["spec"]["size"] = 2
        sandbox.apply(made)
        sandbox.eventually(lambda: held.hits == 1)

        annotate("a b")
        hold.until.set()

        sandbox.eventually(
            lambda: (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["data"] == {"size": "2"}
        )
        assert (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["uid"] == uid


def test_nothing_is_pruned_for_an_owner_whose_status_wants_it_by_now(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    seen: list[str] = []

    class OfStatus(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)
        on_status = True

        async def reconcile(self, axn: Axn[Thing]) -> None:
            seen.append((axn.resource.get("status") or {}).get("phase", ""))
            for part in seen[-1].split():
                axn.register_descendant(config_map(part, size=str(axn.spec.size)))

    def tell(phase: str) -> None:
        path = f"{path_of('t1', namespace)}/status"
        assert sandbox.request("PATCH", path, {"status": {"phase": phase}}, content_type=MERGE).status == 200

    with serving(operator_of(OfStatus), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        hold = Hold()
        held = proxy.add(Fault(hold, on=is_the_apply_of_b))
        tell("a")
        sandbox.eventually(lambda: names(sandbox, namespace) == {"a"})
        uid = (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["uid"]
        tell("b")
        sandbox.eventually(lambda: held.hits == 1)

        tell("a b")
        hold.until.set()

        # An object is handled once at a time: what the reconcile of "b" pruned was pruned before this one.
        sandbox.eventually(lambda: seen[-1] == "a b")
        sandbox.eventually(lambda: names(sandbox, namespace) == {"a", "b"})
        assert (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["uid"] == uid


def test_nothing_is_pruned_for_an_owner_without_a_generation_that_wants_it_by_now(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """Regression: of a ConfigMap there is no generation, so whatever it held counted as what the handler saw."""

    class FromConfig(Controller[Any]):
        resource = Kind("v1", "ConfigMap", label_selector="parts=yes")
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Any]) -> None:
            for part in axn.resource["data"]["parts"].split():
                axn.register_descendant(config_map(part, size=axn.resource["data"]["size"]))

    def owner(parts: str, size: str) -> Resource:
        made = config_map("owner", namespace=namespace, parts=parts, size=size)
        made["metadata"]["labels"] = {"parts": "yes"}
        return made

    with serving(operator_of(FromConfig), proxy.kubeconfig):
        sandbox.apply(owner("a b", "1"))
        sandbox.eventually(lambda: names(sandbox, namespace) >= {"a", "b"})
        uid = (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["uid"]
        hold = Hold()
        held = proxy.add(Fault(hold, on=is_the_apply_of_b))
        sandbox.apply(owner("b", "2"))
        sandbox.eventually(lambda: held.hits == 1)

        sandbox.apply(owner("a b", "3"))
        hold.until.set()

        sandbox.eventually(
            lambda: (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["data"] == {"size": "3"}
        )
        assert (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["uid"] == uid


def test_a_child_is_not_recreated_for_an_owner_that_changed_back(sandbox: Sandbox, namespace: str) -> None:
    """Regression: what stood right was deleted, because the handler had seen what its owner wanted before."""
    waiting = Waiting()

    class Replacing(Controller[Thing]):
        owns = (Owned("apps/v1", "Deployment"),)

        def reconcile(self, axn: Axn[Thing]) -> None:
            if axn.spec.label == "two":
                waiting()
            axn.register_descendant(deployment("t1", label=axn.spec.label), recreate=True)

    def live() -> Resource:
        return sandbox.get("apps/v1", "Deployment", "t1", namespace=namespace) or {}

    with serving(operator_of(Replacing), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, label="one"))
        until_reconciled(sandbox, "t1", namespace)
        uid = live()["metadata"]["uid"]
        spec(sandbox, "t1", namespace, label="two")
        assert waiting.reached.wait(10)

        spec(sandbox, "t1", namespace, label="one")
        waiting.go_on.set()

        until_reconciled(sandbox, "t1", namespace)
        assert live()["metadata"]["uid"] == uid


def test_nothing_is_cleaned_up_for_an_object_that_is_gone_while_another_one_has_its_name(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """Regression: what belonged to the new one was removed, because the stream still showed the end of the old one."""
    waiting = Waiting()
    finalized: list[str] = []

    class Cleaning(PartsController):
        def finalize(self, axn: Axn[Thing]) -> None:
            if not waiting.go_on.is_set():
                waiting()
                raise Retry("not yet", after=0.1)
            finalized.append(axn.uid)

    with serving(operator_of(Cleaning), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace)
        path = path_of("t1", namespace)
        sandbox.request("DELETE", path)
        assert waiting.reached.wait(10)
        stalled = proxy.add(Fault(Stall(), on=watch_of_things, times=None))
        proxy.cut_all()
        sandbox.eventually(lambda: stalled.hits > 0)
        # As a person does who has lost patience.
        sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        (anew,) = sandbox.apply(thing("t1", namespace=namespace))
        tries = proxy.count(lambda request: request.path == path)
        waiting.go_on.set()
        sandbox.eventually(lambda: proxy.count(lambda request: request.path == path) > tries)

        proxy.remove(stalled)
        proxy.cut_all()

        live = sandbox.eventually(lambda: until_reconciled(sandbox, "t1", namespace), within_seconds=20.0)
    assert live["metadata"]["uid"] == anew["metadata"]["uid"]
    assert finalized == []


# --- nothing is lost --------------------------------------------------------------------------------------------------


def test_what_was_dropped_before_its_stream_showed_it_is_pruned_later(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: its event was that of an own write, and woke nobody."""
    monkeypatch.setattr(own_writes, "BARRIER_SECONDS", 0.5)
    with serving(operator_of(PartsController), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a"]))
        until_reconciled(sandbox, "t1", namespace)
        stalled = proxy.add(Fault(Stall(), on=watch_of_config_maps, times=None))
        proxy.cut_all()
        sandbox.eventually(lambda: stalled.hits > 0)
        spec(sandbox, "t1", namespace, parts=["a", "b"])
        until_reconciled(sandbox, "t1", namespace)
        spec(sandbox, "t1", namespace, parts=["a"])
        # It waits for the stream, in vain, before it goes on.
        sandbox.eventually(lambda: until_reconciled(sandbox, "t1", namespace), within_seconds=20.0)
        assert names(sandbox, namespace) == {"a", "b"}

        proxy.remove(stalled)
        proxy.cut_all()

        sandbox.eventually(lambda: names(sandbox, namespace) == {"a"}, within_seconds=20.0)


def test_a_related_object_is_found_although_its_kind_is_owned_too(sandbox: Sandbox, namespace: str) -> None:
    """Regression: only the stream of the owned ones was asked, which shows what this operator made."""

    class Both(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)
        related = (Related("v1", "ConfigMap", named_by=lambda thing: [thing["spec"]["secret"]]),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            found = axn.observed(config_map(axn.spec.secret))
            axn.update_status(lambda status: {**status, "phase": found["data"]["word"] if found else "none"})

    with serving(operator_of(Both), sandbox.kubeconfig):
        sandbox.apply(config_map("theirs", namespace=namespace, word="hello"))
        sandbox.apply(thing("t1", namespace=namespace, secret="theirs"))
        assert until_reconciled(sandbox, "t1", namespace)["status"]["phase"] == "hello"


def test_a_handler_that_changes_its_copy_keeps_its_status(sandbox: Sandbox, namespace: str) -> None:
    """Regression: without managedFields in the copy the status was made from nothing each time."""

    class Careless(Controller[Thing]):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            axn.resource["metadata"].pop("managedFields", None)
            axn.resource["metadata"].pop("resourceVersion", None)
            status = axn.resource.setdefault("status", {})
            status["phase"] = str(axn.spec.size)
            axn.update_status(lambda known: {**known, "parts": known.get("parts", 0) + 1, "phase": status["phase"]})

    with serving(operator_of(Careless), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, size=0))
        first = until_reconciled(sandbox, "t1", namespace)["status"]
        for size in (1, 2, 3):
            spec(sandbox, "t1", namespace, size=size)
            status = until_reconciled(sandbox, "t1", namespace)["status"]
            assert (status["phase"], status["parts"]) == (str(size), size + 1)
    assert status["conditions"][0]["lastTransitionTime"] == first["conditions"][0]["lastTransitionTime"]


# What etcd refuses, what the API server's connection to etcd refuses, and what the API server itself refuses.
@pytest.mark.parametrize("length", [1_600_000, 2_500_000, 3_500_000])
def test_a_status_that_is_too_large_is_reported_in_the_status(sandbox: Sandbox, namespace: str, length: int) -> None:
    """Regression: the reporting step was the one that failed, so only the log said it."""

    class Verbose(Controller[Thing]):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            axn.update_status(lambda _: {"phase": "x" * (length if axn.spec.size > 1 else 1)})

    with serving(operator_of(Verbose), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, size=1))
        until_reconciled(sandbox, "t1", namespace)
        spec(sandbox, "t1", namespace, size=2)

        def status() -> Resource:
            return dict((sandbox.get(*THING, "t1", namespace=namespace) or {})["status"])

        sandbox.eventually(lambda: status()["conditions"][0]["reason"] == "Invalid", within_seconds=20.0)
        assert re.search("TooLarge|too large|larger than max", status()["conditions"][0]["message"])
        assert (status()["phase"], status()["observedGeneration"]) == ("x", 1)


def test_what_has_a_long_name_is_recreated_as_well(sandbox: Sandbox, namespace: str) -> None:
    """Regression: the name of the trial was cut behind a dot, and refused."""
    name = f"{'a' * 49}.{'b' * 20}"

    class Immutable(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            frozen = {**config_map(name, size=str(axn.spec.size)), "immutable": True}
            axn.register_descendant(frozen, recreate=True)

    with serving(operator_of(Immutable), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace)
        spec(sandbox, "t1", namespace, size=2)
        until_reconciled(sandbox, "t1", namespace)
    assert (sandbox.get("v1", "ConfigMap", name, namespace=namespace) or {})["data"] == {"size": "2"}


def test_nothing_is_left_in_memory_of_objects_that_are_gone(sandbox: Sandbox, namespace: str) -> None:
    """Whatever became of them: done, failed, given up, kept from a name that somebody else has."""

    class Mixed(PartsController):
        owns = (Owned("v1", "ConfigMap"), Owned("apps/v1", "Deployment"))

        async def reconcile(self, axn: Axn[Thing]) -> None:
            match axn.spec.label:
                case "fails":
                    raise ValueError
                case "terminal":
                    raise Terminal("never")
                case "waits":
                    axn.requeue_after(3600.0)
            axn.register_descendant(deployment(axn.key.name, label=f"size-{axn.spec.size}"), group=1, recreate=True)
            await super().reconcile(axn)

        async def finalize(self, axn: Axn[Thing]) -> None: ...

    labels = ("one", "fails", "terminal", "waits")
    told = {"fails": ("False", "HandlerFailed"), "terminal": ("False", "Terminal")}
    with serving(operator_of(Mixed.configured(namespace=namespace)), sandbox.kubeconfig) as at_work:
        sandbox.apply(config_map("theirs", namespace=namespace))
        for label in labels:
            sandbox.apply(thing(label, namespace=namespace, label=label, parts=[f"{label}-a", f"{label}-b"]))
            until_reconciled(sandbox, label, namespace, *told.get(label, ()))
            spec(sandbox, label, namespace, parts=[f"{label}-a"], size=2)
            until_reconciled(sandbox, label, namespace, *told.get(label, ()))
        sandbox.apply(thing("foreign", namespace=namespace, parts=["theirs"]))
        until_reconciled(sandbox, "foreign", namespace, "False", "ForeignObject")
        for name in (*labels, "foreign"):
            sandbox.request("DELETE", path_of(name, namespace))
            sandbox.eventually(lambda name=name: sandbox.get(*THING, name, namespace=namespace) is None)
        for collection in ("/api/v1", "configmaps"), ("/apis/apps/v1", "deployments"):
            sandbox.request("DELETE", f"{collection[0]}/namespaces/{namespace}/{collection[1]}")
        # What was written last is shown.
        (worker,) = at_work.process.workers
        sandbox.eventually(lambda: left_in(worker) == {})


def left_in(worker: Worker) -> dict[str, object]:
    router = worker.router
    now = time.monotonic()
    held = {
        "records": [key for key, _ in router.records.items()],
        "awaited": [key for waiting in router.own_writes._awaited.values() for _, key in waiting],
        "writes": router.own_writes._keys,
        "followers": router.own_writes._followers,
        "unsure": router._keys_waiting_for_sync,
        "running": worker.running,
        "queued": router.queue._entries,
        "timers": router.queue._schedule.timers,
        "children": [item for source in router.owned_streams for item in source.store],
    }
    assert router.queue.statistics(now=now).working == 0
    return {name: known for name, known in held.items() if known}


# --- nothing is said twice, or not at all -----------------------------------------------------------------------------


def test_a_change_of_the_status_that_was_applied_early_is_not_made_again(sandbox: Sandbox, namespace: str) -> None:
    """Regression: the last step made the registered changes a second time, to the status that held them already."""

    class Counting(compat.Controller[Thing]):
        async def reconcile(self, axn: compat.Axn[Thing]) -> None:
            axn.update_status(lambda status: {**status, "parts": status.get("parts", 0) + 1})
            await axn.apply_status()

    with serving(operator_of(Counting), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        assert until_reconciled(sandbox, "t1", namespace)["status"]["parts"] == 1


@pytest.mark.parametrize("where", ["change", "hook"])
def test_a_status_that_cannot_be_made_is_told_by_the_condition(sandbox: Sandbox, namespace: str, where: str) -> None:
    """Regression: only the log said so; `Reconciled` stayed what it was."""

    def fail(*_: object) -> Resource:
        raise ValueError("no")

    class Broken(compat.Controller[Thing]):
        async def reconcile(self, axn: compat.Axn[Thing]) -> None:
            if where == "hook":
                axn.register_before_apply_status(fail)
            else:
                axn.update_status(fail)

    with serving(operator_of(Broken), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace, "False", "HandlerFailed")


def test_descendants_may_be_applied_after_the_events_were_emitted(sandbox: Sandbox, namespace: str) -> None:
    """Regression: the event of the creation came too late, and the handling counted as failed."""
    tries: list[int] = []

    class Early(PartsController):
        axn_class = compat.Axn

        async def reconcile(self, axn: compat.Axn[Thing]) -> None:
            tries.append(axn.tries)
            await super().reconcile(axn)
            axn.emit_events()
            await axn.apply_descendants()

    with serving(operator_of(Early), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a"]))
        until_reconciled(sandbox, "t1", namespace)
    assert tries == [0]


def test_what_nobody_collects_is_named_once_although_it_is_applied_early(
    sandbox: Sandbox, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: each handling warned anew."""

    class Early(compat.Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: compat.Axn[Thing]) -> None:
            axn.register_descendant(config_map(axn.key.name, size=str(axn.spec.size)), omit_owner_ref=True)
            await axn.apply_descendants()

    with serving(operator_of(Early), sandbox.kubeconfig):
        for name in ("t1", "t2"):
            sandbox.apply(thing(name, namespace=namespace))
            until_reconciled(sandbox, name, namespace)
    told = [record for record in caplog.records if record.message == "descendants stay when their owner is deleted"]
    assert len(told) == 1


# --- steps, threads and cancellations ---------------------------------------------------------------------------------


class PanicException(BaseException):
    """As what extensions in Rust raise: no Exception."""


def test_a_step_that_raises_a_base_exception_costs_its_own_object_a_try(sandbox: Sandbox, namespace: str) -> None:
    """Regression: the object stayed with a worker that was gone; what ended in sys.exit ended the operator."""
    left = {"panics": 1, "exits": 1}

    def unruly(axn: Axn[Any]) -> None:
        name = axn.key.name
        left[name] -= 1
        if left[name] >= 0:
            raise SystemExit(3) if name == "exits" else PanicException("a secret that must not be shown")

    class Stepped(PartsController):
        steps = (unruly,)

    with serving(operator_of(Stepped), sandbox.kubeconfig):
        for name in left:
            sandbox.apply(thing(name, namespace=namespace, parts=[name]))
        for name in left:
            until_reconciled(sandbox, name, namespace)


def test_hooks_that_raise_whatever_they_like_do_not_undo_the_work(sandbox: Sandbox, namespace: str) -> None:
    ran: list[str] = []

    def exits(axn: Axn[Any]) -> None:
        ran.append(str(axn.key))
        raise SystemExit(3)

    class Hooked(PartsController):
        axn_class = compat.Axn

        async def reconcile(self, axn: compat.Axn[Thing]) -> None:
            axn.register_after_processed(exits)
            axn.register_after_processed(exits)
            await super().reconcile(axn)

    with serving(operator_of(Hooked), sandbox.kubeconfig) as at_work:
        for name in ("t1", "t2"):
            sandbox.apply(thing(name, namespace=namespace, parts=[name]))
            until_reconciled(sandbox, name, namespace)
        sandbox.eventually(lambda: at_work.process.workers[0].handled == 2)
    assert ran == [f"{namespace}/t1"] * 2 + [f"{namespace}/t2"] * 2


def test_a_handler_that_cancels_itself_is_told_by_the_condition(sandbox: Sandbox, namespace: str) -> None:
    """Regression: only the log said so."""

    class Cancels(Controller[Thing]):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            raise asyncio.CancelledError

    with serving(operator_of(Cancels), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace, "False", "HandlerFailed")


def test_what_a_thread_still_does_is_ended_when_its_time_is_over(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """Regression: what it had the loop do went on, write after write."""
    hold = Hold()
    held = proxy.add(Fault(hold, on=is_the_apply_of_b))

    class Threaded(compat.Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)
        timeout = 1.0
        ended: ClassVar[list[str]] = []

        def reconcile(self, axn: compat.Axn[Thing]) -> None:
            if self.ended:
                return
            axn.register_descendant(config_map("b"), group=1)
            axn.register_descendant(config_map("c"), group=2)
            try:
                axn.call(axn.apply_descendants(create_events=False))
            except Exception as error:
                self.ended.append(type(error).__name__)
                raise

    with serving(operator_of(Threaded), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace, "False", "Timeout")
        assert held.hits == 1
        hold.until.set()
        until_reconciled(sandbox, "t1", namespace)
    assert Threaded.ended == ["AlreadyApplied"]
    assert names(sandbox, namespace) <= {"b"}


def test_a_thread_that_outlives_the_stop_can_write_nothing_more(sandbox: Sandbox, namespace: str) -> None:
    """Regression: only a handler's own timeout sealed its token, not the end of the grace period."""
    waiting = Waiting()
    told: list[str] = []

    class Threaded(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)
        shutdown_timeout = 0.0

        def reconcile(self, axn: Axn[Thing]) -> None:
            waiting()
            try:
                axn.register_descendant(config_map("late"))
            except Exception as error:
                told.append(type(error).__name__)
                raise

    with serving(operator_of(Threaded), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        assert waiting.reached.wait(10)
    waiting.go_on.set()
    sandbox.eventually(lambda: told == ["AlreadyApplied"])


def test_of_several_that_may_not_be_deleted_each_is_tried_and_named(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    def of_a_or_b(request: ProxiedRequest) -> bool:
        return request.method == "DELETE" and request.path[-1] in "ab"

    proxy.add(Fault(Respond(403, b"no"), on=of_a_or_b, times=None))
    with serving(operator_of(PartsController), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a", "b", "c"]))
        until_reconciled(sandbox, "t1", namespace)
        spec(sandbox, "t1", namespace, parts=[])
        told = until_reconciled(sandbox, "t1", namespace, "False", "Forbidden")["status"]["conditions"]
    assert names(sandbox, namespace) == {"a", "b"}
    (message,) = [known["message"] for known in told if known["type"] == "Reconciled"]
    assert all(f"cannot delete configmaps {namespace}/{name} (403)" in message for name in "ab")


# --- kinds and namespaces of all sorts --------------------------------------------------------------------------------


@pytest.mark.parametrize("metadata_only", [False, True])
def test_one_controller_finalizes_and_prunes_for_kinds_of_all_sorts(
    sandbox: Sandbox, namespace: str, metadata_only: bool
) -> None:
    """One of its own, in a namespace; one of Kubernetes' own, in none, without a status, and narrowed by a selector."""
    finalized: list[str] = []
    classes = Kind(
        "scheduling.k8s.io/v1", "PriorityClass", label_selector=f"of={namespace}", metadata_only=metadata_only
    )

    class Everything(Controller[Any]):
        resource = (Thing, classes)
        owns = (Owned("v1", "ConfigMap", metadata_only=metadata_only),)

        async def reconcile(self, axn: Axn[Any]) -> None:
            for part in axn.resource["metadata"]["annotations"]["parts"].split():
                axn.register_descendant(config_map(f"{axn.key.name}-{part}", namespace=namespace))

        async def finalize(self, axn: Axn[Any]) -> None:
            finalized.append(str(axn.key))

    key = f"kind-{namespace}"
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": key, "labels": {"of": namespace}},
        "value": 1,
    }
    objects = {
        path_of("t1", namespace): thing("t1", namespace=namespace),
        f"/apis/scheduling.k8s.io/v1/priorityclasses/{key}": priority,
    }
    with serving(operator_of(Everything), sandbox.kubeconfig) as at_work:
        for path, resource in objects.items():
            resource["metadata"]["annotations"] = {"parts": "a b"}
            sandbox.apply(resource)
            name = resource["metadata"]["name"]
            sandbox.eventually(lambda name=name: {f"{name}-a", f"{name}-b"} <= names(sandbox, namespace))
            assert sandbox.request("GET", path).body["metadata"]["finalizers"]
            change = {"metadata": {"annotations": {"parts": "b"}}}
            sandbox.request("PATCH", path, change, content_type=MERGE)
            sandbox.eventually(lambda name=name: f"{name}-a" not in names(sandbox, namespace))
            handled = sum(worker.handled for worker in at_work.process.workers)
            sandbox.request("DELETE", path)
            sandbox.eventually(lambda path=path: sandbox.request("GET", path).status == 404)
            sandbox.eventually(lambda: sum(worker.handled for worker in at_work.process.workers) > handled)  # noqa: B023
    assert finalized == [f"{namespace}/t1", key]
    assert names(sandbox, namespace) == {"t1-b", f"{key}-b"}, "with an owner reference: the collector's business"


def test_children_in_another_watched_namespace_are_pruned_and_cleaned_up(sandbox: Sandbox, namespace: str) -> None:
    with own_namespace(sandbox) as far:

        class Scattering(Controller[Thing]):
            owns = (Owned("v1", "ConfigMap"),)

            async def reconcile(self, axn: Axn[Thing]) -> None:
                for part in axn.spec.parts:
                    axn.register_descendant(config_map(part, namespace=far))
                axn.register_descendant(config_map("near"))

            async def finalize(self, axn: Axn[Thing]) -> None: ...

        with serving(operator_of(Scattering), sandbox.kubeconfig, watch_namespaces=(namespace, far)):
            sandbox.apply(thing("t1", namespace=namespace, parts=["a", "b"]))
            until_reconciled(sandbox, "t1", namespace)
            assert (names(sandbox, namespace), names(sandbox, far)) == ({"near"}, {"a", "b"})
            spec(sandbox, "t1", namespace, parts=["b"])
            sandbox.eventually(lambda: names(sandbox, far) == {"b"})
            sandbox.delete("v1", "ConfigMap", "b", namespace=far)
            sandbox.eventually(lambda: names(sandbox, far) == {"b"})
            sandbox.request("DELETE", path_of("t1", namespace))
            sandbox.eventually(lambda: sandbox.get(*THING, "t1", namespace=namespace) is None)
            assert names(sandbox, far) == set()


# --- a status of one's own is no change -------------------------------------------------------------------------------


class Noting(Controller[Thing]):
    """Counts how often it looked at an object, in its status; `seen` has the actions and the phases it saw."""

    owns = (Owned("v1", "ConfigMap"),)
    on_status = True
    seen: ClassVar[list[tuple[str, str]]] = []

    def add(self, axn: Axn[Thing]) -> None:
        self.note(axn)

    def modify(self, axn: Axn[Thing]) -> None:
        self.note(axn)

    def reconcile(self, axn: Axn[Thing]) -> None:
        self.note(axn)

    def note(self, axn: Axn[Thing]) -> None:
        """What every handler does."""
        self.seen.append((axn.action.value, axn.resource.get("status", {}).get("phase", "")))
        axn.register_descendant(config_map(axn.key.name))
        axn.update_status(lambda status: {**status, "parts": status.get("parts", 0) + 1})


def touch_child(sandbox: Sandbox, namespace: str, size: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/t1"
    assert sandbox.request("PATCH", path, {"data": {"size": size}}, content_type=MERGE).status == 200


def set_phase(sandbox: Sandbox, namespace: str, phase: str) -> None:
    path, change = f"{path_of('t1', namespace)}/status", {"status": {"phase": phase}}
    assert sandbox.request("PATCH", path, change, content_type=MERGE).status == 200


def test_a_status_that_a_controller_wrote_itself_is_no_modify_for_it(sandbox: Sandbox, namespace: str) -> None:
    """Regression: after its own status write a controller with `on_status` got `modify` where nothing had changed."""

    class Own(Noting):
        seen: ClassVar[list[tuple[str, str]]] = []

    with serving(operator_of(Own), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace)
        for number in (1, 2):
            touch_child(sandbox, namespace, str(number))
            sandbox.eventually(lambda number=number: len(Own.seen) == 1 + number)
            until_parts(sandbox, namespace, 1 + number)
        set_phase(sandbox, namespace, "theirs")
        until_parts(sandbox, namespace, 4)
    assert Own.seen == [("add", ""), ("reconcile", ""), ("reconcile", ""), ("modify", "theirs")]


def until_parts(sandbox: Sandbox, namespace: str, parts: int) -> None:
    sandbox.eventually(lambda: (sandbox.get(*THING, "t1", namespace=namespace) or {})["status"]["parts"] == parts)


def test_a_foreign_status_behind_which_a_controller_wrote_its_own_is_a_modify(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """The write is refused as a conflict, and made again on what the handler has not seen."""

    class Behind(Noting):
        seen: ClassVar[list[tuple[str, str]]] = []

    hold = Hold(until=threading.Event())
    with serving(operator_of(Behind), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        until_parts(sandbox, namespace, 1)
        held = proxy.add(Fault(hold, on=lambda request: request.path == f"{path_of('t1', namespace)}/status", times=1))
        touch_child(sandbox, namespace, "1")
        sandbox.eventually(lambda: held.hits == 1)
        set_phase(sandbox, namespace, "theirs")
        hold.until.set()
        sandbox.eventually(lambda: ("modify", "theirs") in Behind.seen)
    assert Behind.seen[:2] == [("add", ""), ("reconcile", "")]
    assert Behind.seen[2:] == [("modify", "theirs")]
