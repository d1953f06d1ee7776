"""Rows I, S, A, P and E of the pipeline: finalizers, pruning, recreating, status (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from bonny import Axn, Controller, Owned, Resource
from bonny.errors import AlreadyApplied
from bonny_dev.crd.definition import crds
from bonny_dev.manifest.bundle import documents
from bonny_dev.manifest.rbac import CLUSTER, grants
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import CommitThenDrop, Drop, Fault, FaultProxy, Hold, ProxiedRequest, is_write
from tests.conftest import Start
from tests.faults.scene import SEEN_SECONDS, SLOW, Predicate, Scene, behind_a_proxy, refused, watch_of_config_maps
from tests.faults.story import KINDS, NAME, Chapter, Story, events_of_things, histories, newest_version
from tests.support.load import create
from tests.support.pipelined import PipelinedController, operator
from tests.support.processes import pipelined
from tests.support.raising import RAISED_ON_THE_LOOP
from tests.support.serving import Serving, serving
from tests.support.things import (
    GROUP,
    MERGE,
    PartsController,
    Thing,
    config_map,
    names,
    operator_of,
    own_namespace,
    path_of,
    remove_things,
    spec,
    thing,
    until_reconciled,
)

APPLY = "application/apply-patch+yaml"
# What a story without a fault writes: a finalizer, three children, a Deployment and a status; two children, a refused
# change, its trial, its deletion, the new one, the dropped child and a status; the Deployment, whose group is the later
# one, a status that says so, the far child and the finalizer.
WRITES = 6 + 8 + 4


@pytest.fixture(autouse=True)
def _things(sandbox: Sandbox) -> Iterator[None]:
    sandbox.apply(crds([Thing], GROUP))
    yield
    remove_things(sandbox)


@pytest.fixture
def pipeline(scene: Scene) -> Scene:
    """The operator that uses all of the pipeline, ready, behind a proxy."""
    scene.begin(pipelined(), watch_seconds=200.0).wait_ready(within_seconds=SEEN_SECONDS)
    return scene


# --- I: writes --------------------------------------------------------------------------------------------------------


def undisturbed(scene: Scene) -> tuple[Story, dict[Chapter, dict[str, object]]]:
    """A story without a fault, and its states."""
    story = Story(scene)
    states = {}
    for chapter in Chapter:
        story.begin(chapter)
        states[chapter] = story.settle()
    assert story.writes == WRITES
    return story, states


ALL = pytest.param(range(WRITES), id="all", marks=SLOW)


@pytest.mark.parametrize("crashes", [pytest.param(range(0, WRITES, 5), id="some"), ALL])
def test_i1_a_crash_right_after_any_write_is_repaired_by_the_next_start(pipeline: Scene, crashes: range) -> None:
    """The write is stored, its answer is lost, and nothing that the operator would have done then arrives."""
    since = newest_version(pipeline.sandbox)
    reference, states = undisturbed(pipeline)
    lives = {}
    for nth in crashes:
        story = lives[nth] = Story(pipeline)
        fault = story.strike(nth, CommitThenDrop(), last=True)
        restarted = False
        for chapter in Chapter:
            story.begin(chapter)
            if not restarted:
                pipeline.sandbox.eventually(
                    lambda: fault.hits or story.state() == states[chapter],  # noqa: B023  called at once
                    within_seconds=SEEN_SECONDS,
                )
            if fault.hits and not restarted:
                story.restart()
                restarted = True
            story.until(states[chapter])
        assert restarted, f"there was no write {nth}"
    history = histories(pipeline.sandbox, since=since)
    for nth, story in lives.items():
        assert history[story.namespace] == history[reference.namespace], f"after the write {nth}"


def test_i2_i3_any_write_that_is_lost_or_whose_answer_is_lost_is_made_good(pipeline: Scene) -> None:
    """All of these lives at the same time, each with a fault of its own."""
    since = newest_version(pipeline.sandbox)
    reference, states = undisturbed(pipeline)
    stories = {(effect, nth): Story(pipeline) for effect in (Drop(), CommitThenDrop()) for nth in range(WRITES)}
    faults = [story.strike(nth, effect) for (effect, nth), story in stories.items()]
    for chapter in Chapter:
        for story in stories.values():
            story.begin(chapter)
        for story in stories.values():
            story.until(states[chapter])

    assert [fault.hits for fault in faults] == [1] * len(faults)
    history = histories(pipeline.sandbox, since=since)
    for where, story in stories.items():
        assert history[story.namespace] == history[reference.namespace], where


def test_i5_a_crash_between_the_cleanup_and_the_removal_of_the_finalizer_repeats_the_cleanup(pipeline: Scene) -> None:
    since = newest_version(pipeline.sandbox)
    story = Story(pipeline)
    for chapter in (Chapter.CREATED, Chapter.CHANGED):
        story.begin(chapter)
        story.settle()
    finalized = f"finalized {story.namespace}/t"
    # The Deployment, a status, and the children that only it can remove go first.
    removal = story.strike(3, Drop(), last=True)
    story.begin(Chapter.DELETED)
    pipeline.sandbox.eventually(lambda: removal.hits == 1)
    assert finalized in pipeline.operator.text
    assert "Thing t" in story.state()
    assert "ConfigMap far" not in story.state()

    story.restart()

    pipeline.sandbox.eventually(lambda: "Thing t" not in story.state(), within_seconds=SEEN_SECONDS)
    assert pipeline.operator.text.count(finalized) == 1, "once more, by the second process"
    assert histories(pipeline.sandbox, since=since)[story.namespace]["DELETED Thing t"] == 1


# --- S: knowledge -----------------------------------------------------------------------------------------------------


def test_s2_a_child_re_created_by_another_client_behind_a_lagging_stream_is_not_pruned(pipeline: Scene) -> None:
    story = Story(pipeline)
    story.begin(Chapter.CREATED)
    story.settle()
    held = pipeline.blind(watch_of_config_maps)
    pipeline.sandbox.delete("v1", "ConfigMap", "b", namespace=story.namespace)
    (theirs,) = pipeline.sandbox.apply(config_map("b", namespace=story.namespace, word="precious"))

    story.begin(Chapter.CHANGED)

    pipeline.sandbox.eventually(
        lambda: pipeline.proxy.count(lambda request: request.method == "DELETE" and request.path.endswith("/b")) == 1
    )
    story.settle()
    assert pipeline.sandbox.get("v1", "ConfigMap", "b", namespace=story.namespace) == theirs
    pipeline.see(held)


def test_s4_the_status_of_a_newer_generation_is_never_replaced_by_that_of_an_older_one(pipeline: Scene) -> None:
    """Regression: what still worked on what it had seen before lowered observedGeneration after a conflict."""
    since = newest_version(pipeline.sandbox)
    story = Story(pipeline)
    hold = Hold()
    held = pipeline.proxy.add(Fault(hold, on=lambda request: request.path.endswith("/status")))
    story.begin(Chapter.CREATED)
    pipeline.sandbox.eventually(lambda: held.hits == 1)
    # What another replica does meanwhile, which has seen more.
    spec(pipeline.sandbox, NAME, story.namespace, size=2)
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "size 2", "observedGeneration": 2}
    newer = {
        **thing(NAME, namespace=story.namespace),
        "status": {
            "observedGeneration": 2,
            "parts": 3,
            "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }
    del newer["spec"]
    path = f"{path_of(NAME, story.namespace)}/status?fieldManager=pipelined/PipelinedController&force=true"
    assert pipeline.sandbox.request("PATCH", path, newer, content_type=APPLY).status == 200

    hold.until.set()

    story.settle()
    told = [event["object"].get("status", {}) for event in events_of_things(pipeline.sandbox, since=since)]
    observed = [status.get("observedGeneration", 0) for status in told]
    assert observed == sorted(observed)
    said = [known["message"] for status in told for known in status.get("conditions", ()) if known["type"] == "Ready"]
    assert set(said) == {"size 2"}


# --- A: answers -------------------------------------------------------------------------------------------------------


class Contested(NamedTuple):
    """A write that somebody else always comes before, and what they do."""

    chapter: Chapter
    on: Predicate
    touch: Callable[[Story, int], None]
    left: Callable[[Story], bool]
    """Whether what they did still stands."""


def is_finalizer_patch(request: ProxiedRequest) -> bool:
    return request.method == "PATCH" and request.path.endswith(f"/things/{NAME}")


def add_finalizer(story: Story, number: int) -> None:
    story.patch(f"things/{NAME}", {"metadata": {"finalizers": THEIRS[: number + 1]}})


def remove_finalizer(story: Story, number: int) -> None:
    ours = story.live()["metadata"]["finalizers"][-1]
    story.patch(f"things/{NAME}", {"metadata": {"finalizers": [*THEIRS[number + 1 :], ours]}})


THEIRS = ["example.com/one", "example.com/two"]
CONTESTED = {
    "adding-the-finalizer": Contested(
        Chapter.CREATED,
        on=is_finalizer_patch,
        touch=add_finalizer,
        left=lambda story: story.live()["metadata"]["finalizers"][:2] == THEIRS,
    ),
    "removing-the-finalizer": Contested(
        Chapter.DELETED,
        on=is_finalizer_patch,
        touch=remove_finalizer,
        left=lambda story: "Thing t" not in story.state(),
    ),
    "status": Contested(
        Chapter.CREATED,
        on=lambda request: request.path.endswith("/status"),
        touch=lambda story, number: story.patch(f"things/{NAME}/status", {"status": {"phase": f"theirs {number}"}}),
        left=lambda story: story.live()["status"]["phase"] == "theirs 1",
    ),
    "pruning": Contested(
        Chapter.CHANGED,
        on=lambda request: request.method == "DELETE" and request.path.endswith("/configmaps/b"),
        touch=lambda story, number: story.patch("configmaps/b", {"data": {"theirs": str(number)}}),
        left=lambda story: "ConfigMap b" not in story.state(),
    ),
}


@pytest.mark.parametrize("contested", CONTESTED.values(), ids=CONTESTED)
def test_a3_a_write_that_conflicts_twice_is_sent_three_times_and_overwrites_nothing(
    pipeline: Scene, contested: Contested
) -> None:
    story = Story(pipeline)
    for chapter in itertools.takewhile(lambda chapter: chapter is not contested.chapter, Chapter):
        story.begin(chapter)
        story.settle()
    if contested.chapter is Chapter.DELETED:
        story.patch(f"things/{NAME}", {"metadata": {"finalizers": [*THEIRS, *story.live()["metadata"]["finalizers"]]}})
        story.settle()
    began = time.monotonic()
    holds = [Hold(), Hold()]
    faults = [pipeline.proxy.add(Fault(hold, on=contested.on)) for hold in holds]
    story.begin(contested.chapter)
    for number, (hold, fault) in enumerate(zip(holds, faults, strict=True)):
        pipeline.sandbox.eventually(lambda fault=fault: fault.hits == 1)
        contested.touch(story, number)
        hold.until.set()

    pipeline.sandbox.eventually(lambda: contested.left(story), within_seconds=SEEN_SECONDS)
    story.settle()
    assert contested.left(story)
    assert pipeline.proxy.count(contested.on, since=began) == len(faults) + 1


def test_a3_an_apply_that_is_refused_twice_is_sent_three_times_and_leaves_fields_of_others(
    pipeline: Scene,
) -> None:
    story = Story(pipeline)
    story.begin(Chapter.CREATED)
    story.settle()
    story.patch("configmaps/a", {"data": {"theirs": "yes"}})

    def of_a(request: ProxiedRequest) -> bool:
        return request.method == "PATCH" and request.path.endswith("/configmaps/a")

    began = time.monotonic()
    pipeline.proxy.add(Fault(refused(409, "Conflict", "try again"), on=of_a, times=2))
    story.begin(Chapter.CHANGED)

    story.settle()
    a = pipeline.sandbox.get("v1", "ConfigMap", "a", namespace=story.namespace)
    assert a is not None
    assert a["data"] == {"size": "2", "theirs": "yes"}
    assert pipeline.proxy.count(of_a, since=began) == 3


class Allowed:
    """What the operator's own ServiceAccount may do, which the test can change."""

    def __init__(self, sandbox: Sandbox) -> None:
        sandbox.apply(documents(operator, image=None, namespace=operator.name, local=True))
        self.token = sandbox.service_account_token(operator.name, operator.name)
        self._sandbox = sandbox
        self._rules = grants(operator, namespace=operator.name)[CLUSTER]

    def all_but(self, verb: str = "", group: str = "", resource: str = "") -> None:
        """From now on, and return when the API server knows."""
        rules = [
            {
                **rule,
                "resources": [one],
                "verbs": [known for known in rule["verbs"] if (known, one) != (verb, resource)],
            }
            for rule in self._rules
            for one in rule["resources"]
        ]
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{operator.name}"
        assert self._sandbox.request("PATCH", path, {"rules": rules}, content_type=MERGE).status == 200
        asked = {"verb": verb or "list", "group": group or GROUP, "resource": resource or "things"}
        self._sandbox.eventually(lambda: self._may(asked) is not bool(verb))

    def _may(self, asked: dict[str, str]) -> bool:
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {**asked, "namespace": "default"}},
        }
        return bool(self._sandbox.request("POST", path, review, token=self.token).body["status"]["allowed"])


FORBIDDEN_WRITES = {
    "child": (Chapter.CREATED, ("patch", "apps", "deployments"), "cannot apply deployments.apps {}/t (403)"),
    "pruning": (Chapter.CHANGED, ("delete", "", "configmaps"), "cannot delete configmaps {}/b (403)"),
    "adding-the-finalizer": (Chapter.CREATED, ("patch", GROUP, "things"), "cannot patch things.example.com {}/t (403)"),
    "cleaning-up": (Chapter.DELETED, ("delete", "", "configmaps"), "cannot delete configmaps {}/far (403)"),
}


@pytest.mark.parametrize(("chapter", "missing", "told"), FORBIDDEN_WRITES.values(), ids=FORBIDDEN_WRITES)
def test_a5_a_missing_permission_is_named_by_the_object_that_needs_it_and_others_continue(
    sandbox: Sandbox, start_operator: Start, chapter: Chapter, missing: tuple[str, str, str], told: str
) -> None:
    """The real thing: the operator with the rights of its manifest, of which one is taken away, and given back."""
    allowed = Allowed(sandbox)
    allowed.all_but()
    with behind_a_proxy(sandbox, start_operator, token=allowed.token) as scene:
        scene.begin(pipelined(), watch_seconds=200.0).wait_ready(within_seconds=SEEN_SECONDS)
        _, states = undisturbed(scene)
        story, other = Story(scene), Story(scene)
        for earlier in itertools.takewhile(lambda earlier: earlier is not chapter, Chapter):
            story.begin(earlier)
            story.settle()
        allowed.all_but(*missing)
        story.begin(chapter)

        def reconciled() -> tuple[str, str, str]:
            (known,) = [known for known in story.live()["status"]["conditions"] if known["type"] == "Reconciled"]
            return known["status"], known["reason"], known["message"]

        sandbox.eventually(lambda: reconciled()[:2] == ("False", "Forbidden"))
        assert told.format(story.namespace) in reconciled()[2]
        if missing[0] == "patch" and missing[1] == GROUP:
            assert set(story.state()) == {"Thing t"}, "nothing is made before the finalizer is there"
        else:
            simple = thing("simple", namespace=other.namespace, parts=["a"], label="")
            sandbox.apply(simple)
            until_reconciled(sandbox, "simple", other.namespace)

        allowed.all_but()
        story.until(states[chapter])


# --- P: handlers ------------------------------------------------------------------------------------------------------


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    with own_namespace(sandbox) as name:
        yield name


def test_p2_a_handler_that_hangs_is_ended_and_others_continue(sandbox: Sandbox, namespace: str) -> None:
    ended: list[str] = []

    class Hanging(PartsController):
        timeout = 0.3
        max_concurrent = 1

        async def reconcile(self, axn: Axn[Thing]) -> None:
            if axn.spec.label == "hang":
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(axn.key.name)
            await super().reconcile(axn)

    with serving(operator_of(Hanging), sandbox.kubeconfig):
        sandbox.apply(thing("hangs", namespace=namespace, parts=["never"], label="hang"))
        until_reconciled(sandbox, "hangs", namespace, "False", "Timeout")
        sandbox.apply(thing("other", namespace=namespace, parts=["a"]))
        until_reconciled(sandbox, "other", namespace)
    assert set(ended) == {"hangs"}
    assert names(sandbox, namespace) == {"a"}


def test_p2_a_thread_that_hangs_keeps_its_object_and_its_slot_and_can_write_nothing(
    sandbox: Sandbox, namespace: str
) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    refused_late: list[str] = []
    lock, go_on = threading.Lock(), threading.Event()

    class Hanging(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)
        timeout = 0.3
        max_concurrent = 2

        def reconcile(self, axn: Axn[Thing]) -> None:
            name = axn.key.name
            with lock:
                calls[name] += 1
                running[name] += 1
                most[name] = max(most[name], running[name])
            try:
                if name == "hangs" and not go_on.is_set():
                    go_on.wait(30)
                    self.write(axn)
                axn.register_descendant(config_map(name, size=str(axn.spec.size)))
            finally:
                with lock:
                    running[name] -= 1

        def write(self, axn: Axn[Thing]) -> None:
            coroutine = axn.client.apply(Owned("v1", "ConfigMap"), config_map("late", namespace=namespace), manager="x")
            try:
                axn.call(coroutine)
            except AlreadyApplied as error:
                refused_late.append(str(error))
                raise

    with serving(operator_of(Hanging), sandbox.kubeconfig) as at_work:
        sandbox.apply(thing("hangs", namespace=namespace))
        until_reconciled(sandbox, "hangs", namespace, "False", "Timeout")
        # A change does not bring it to another worker.
        spec(sandbox, "hangs", namespace, size=2)
        for name in ("a", "b", "c"):
            sandbox.apply(thing(name, namespace=namespace))
            until_reconciled(sandbox, name, namespace)
        (worker,) = at_work.process.workers
        sandbox.eventually(lambda: len(worker.running) == 1)
        # The three that passed took longer than the first waits of a failed key, which it would have been tried in.
        assert (calls["hangs"], running["hangs"]) == (1, 1)

        go_on.set()

        until_reconciled(sandbox, "hangs", namespace)
    assert set(most.values()) == {1}, "one object is never handled twice at a time"
    assert len(refused_late) == 1
    hangs = sandbox.get("v1", "ConfigMap", "hangs", namespace=namespace)
    assert hangs is not None
    assert hangs["data"] == {"size": "2"}
    assert names(sandbox, namespace) == {"hangs", "a", "b", "c"}


def test_p1_each_error_of_a_handler_is_in_the_status_and_its_object_recovers(sandbox: Sandbox, namespace: str) -> None:
    """Regression: a GeneratorExit lost its object for ever; a cancellation of its own task and an error without a text
    were reported nowhere. The whole table is in `tests/unit/test_what_user_code_raises.py`."""

    class Raising(PartsController):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            if axn.spec.label == "raise":
                RAISED_ON_THE_LOOP[axn.spec.image]()
                await asyncio.sleep(0)
            await super().reconcile(axn)

    with serving(operator_of(Raising), sandbox.kubeconfig):
        kinds = dict(enumerate(RAISED_ON_THE_LOOP))
        for number, kind in kinds.items():
            sandbox.apply(thing(f"raises-{number}", namespace=namespace, parts=[], label="raise", image=kind))
        sandbox.apply(thing("other", namespace=namespace, parts=["a"]))
        until_reconciled(sandbox, "other", namespace)
        for number in kinds:
            until_reconciled(sandbox, f"raises-{number}", namespace, "False", "HandlerFailed")
            spec(sandbox, f"raises-{number}", namespace, label="one")
        for number in kinds:
            until_reconciled(sandbox, f"raises-{number}", namespace)
    assert names(sandbox, namespace) == {"a"}


@pytest.mark.parametrize("objects", [100, pytest.param(1_000, marks=SLOW)])
def test_p3_many_objects_at_once_cost_a_finalizer_an_apply_and_a_status_each(
    pipeline: Scene, namespace: str, objects: int
) -> None:
    many = [thing(f"t{number}", namespace=namespace, parts=[f"c{number}"], label="") for number in range(objects)]
    began = time.monotonic()
    create(pipeline.sandbox, f"/apis/{GROUP}/v1/namespaces/{namespace}/things", many)

    pipeline.sandbox.eventually(
        lambda: pipeline.operator.text.count('"action":"add"') >= objects, within_seconds=20 + objects / 10
    )

    seconds = time.monotonic() - began
    asked = Counter((r.method, r.path) for r in list(pipeline.proxy.requests) if f"/namespaces/{namespace}/" in r.path)
    print(f"{objects} objects in {seconds:.1f} s, {sum(asked.values())} requests")
    assert Counter(line["action"] for line in pipeline.operator.lines("reconciled")) == {"add": objects}
    assert pipeline.operator.lines("reconcile failed") == []
    assert set(asked.values()) == {1}, "nothing is asked or written twice"
    assert Counter(method for method, _ in asked) == {"PATCH": 3 * objects}
    assert names(pipeline.sandbox, namespace) == {f"c{number}" for number in range(objects)}


# --- E: rest and drift ------------------------------------------------------------------------------------------------


def test_e1_at_rest_nothing_is_written_over_three_periods_and_in_a_restart(sandbox: Sandbox, namespace: str) -> None:
    """With a finalizer, children of both sorts, a Deployment that is stored in another spelling, and a status."""
    resting = operator_of(PipelinedController.configured(reconcile_every=0.5, namespace=namespace))
    things = ("t1", "t2")
    with FaultProxy(sandbox) as proxy:
        with serving(resting, proxy.kubeconfig) as at_work:
            for name in things:
                sandbox.apply(thing(name, namespace=namespace, parts=[f"{name}-a", f"far-{name}"]))
                until_reconciled(sandbox, name, namespace)
            versions, rested = versions_of(sandbox, namespace), time.monotonic()
            until_handled_anew(at_work, times=3 * len(things))
            assert writes_since(proxy, rested) == []
        with serving(resting, proxy.kubeconfig) as at_work:
            until_handled_anew(at_work, times=4 * len(things))
        assert versions_of(sandbox, namespace) == versions
        # What is stored in another spelling is applied once after a start (docs/decisions/0005).
        deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        assert sorted(writes_since(proxy, rested)) == [("PATCH", f"{deployments}/{name}") for name in things]


def writes_since(proxy: FaultProxy, moment: float) -> list[tuple[str, str]]:
    asked = [request for request in list(proxy.requests) if is_write(request) and request.time > moment]
    return [(request.method, request.path) for request in asked]


def until_handled_anew(at_work: Serving, *, times: int) -> None:
    (worker,) = at_work.process.workers
    before = worker.handled
    Sandbox.eventually(lambda: worker.handled >= before + times, within_seconds=20.0)


def versions_of(sandbox: Sandbox, namespace: str) -> dict[tuple[str, str], str]:
    return {
        (kind, found["metadata"]["name"]): found["metadata"]["resourceVersion"]
        for api_version, kind in KINDS
        for found in sandbox.items(api_version, kind, namespace=namespace)
    }


def test_e2_a_child_that_drifts_is_put_right_and_an_autoscaler_keeps_its_fields(
    sandbox: Sandbox, namespace: str
) -> None:
    autoscaled = operator_of(PipelinedController)
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments/t"

    def live() -> Resource:
        found = sandbox.get("apps/v1", "Deployment", "t", namespace=namespace)
        assert found is not None
        return found

    def image() -> str:
        text: str = live()["spec"]["template"]["spec"]["containers"][0]["image"]
        return text

    def drift() -> None:
        container = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "theirs:1"}]
        answer = sandbox.request("PATCH", deployments, container, content_type="application/json-patch+json")
        assert answer.status == 200

    with serving(autoscaled, sandbox.kubeconfig):
        sandbox.apply(thing("t", namespace=namespace, parts=["a"]))
        until_reconciled(sandbox, "t", namespace)
        assert (
            sandbox.request("PATCH", f"{deployments}/scale", {"spec": {"replicas": 7}}, content_type=MERGE).status
            == 200
        )
        drift()
        sandbox.eventually(lambda: image() == "nginx:1")
        assert live()["spec"]["replicas"] == 7
        sandbox.delete("v1", "ConfigMap", "a", namespace=namespace)
        sandbox.eventually(lambda: "a" in names(sandbox, namespace))
    drift()
    sandbox.delete("v1", "ConfigMap", "a", namespace=namespace)
    with serving(autoscaled, sandbox.kubeconfig):
        sandbox.eventually(lambda: image() == "nginx:1")
        sandbox.eventually(lambda: "a" in names(sandbox, namespace))
        assert live()["spec"]["replicas"] == 7
        uid = live()["metadata"]["uid"]
        sandbox.delete("apps/v1", "Deployment", "t", namespace=namespace)
        sandbox.eventually(lambda: live()["metadata"]["uid"] != uid)
        assert live()["spec"]["replicas"] == 1, "nobody owns it any more"
