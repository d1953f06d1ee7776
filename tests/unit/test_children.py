"""Children and related objects: what a handler finds in the cache, at which cost, and how fresh that is.

Streams hold what the test puts into them; none is opened.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny import Axn, Controller, Kind, Owned, Related, Resource, Retry
from bonny.core.objects import Item, decode_item
from bonny.core.own_writes import BARRIER_SECONDS
from bonny.core.queue import Reason
from bonny.core.records import AppliedRecord
from bonny.core.store import Store
from bonny.core.watch import ErrorKind, Put, StreamError, WatchOptions
from bonny.engine.context import ReconcileContext
from bonny.engine.reconcile import Reconcile
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.errors import AlreadyApplied, InvalidObject, OptionError
from bonny.kinds import Scope
from bonny.pipeline import run_step
from bonny.resource import Key
from bonny.steps.apply_descendants import ApplyDescendants
from bonny.steps.prune_descendants import PruneDescendants
from tests.support.recorder import KeptEvents
from tests.support.steps import CONFIG_MAP, Script, owned
from tests.support.steps import token as scripted
from tests.support.tokens import token_of
from tests.support.widget import widget

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
JOB = Owned("batch/v1", "Job")
POD = Related(
    "v1",
    "Pod",
    keys=lambda pod: [pod["metadata"]["labels"]["app"]],
    indexes={"node": lambda pod: [pod["spec"]["nodeName"]], "app": "app"},
)
NODE = Related("v1", "Node", keys=lambda _: [])
JOBS = ("batch/v1", "Job")


class Still(Stream):
    """A stream that shows what the test puts into it, and is as current as the test says."""

    synced = True
    current = True
    error: StreamError | None = None

    def __init__(self, kind: Kind, namespace: str | None = None) -> None:
        super().__init__(cast("Any", None), kind, namespace=namespace, options=WatchOptions())
        self.newest = 0

    @property
    def version(self) -> int:
        return self.newest

    def show(self, *resources: Resource) -> None:
        for resource in resources:
            item = decode_item(msgspec.json.encode(resource))
            self.newest = max(self.newest, item.version)
            for delta in self.store.apply(Put(item, live=True)):
                for subscriber in self._subscribers:
                    subscriber.seen(self, delta)
                    subscriber.advanced(self)


class Watched:
    """A router for Widgets with Jobs, Pods and Nodes, and the token of a reconcile of Widget w1."""

    def __init__(self, *, jobs: Iterable[Still] = (), pods: Iterable[Still] = ()) -> None:
        self.widgets, self.nodes = Still(WIDGET), Still(NODE)
        self.pods = list(pods) or [Still(POD)]
        all_jobs = list(jobs) or [Still(JOB)]
        self.jobs = all_jobs[0]
        self.router = Router(
            primary=[self.widgets],
            owned={JOB: all_jobs},
            related={POD: self.pods, NODE: [self.nodes]},
            on_status=False,
        )
        self.widgets.show(widget())

    def axn(self, resource: Resource | None = None) -> Reconcile[Any]:
        handled = resource or widget()
        metadata = handled["metadata"]
        context = ReconcileContext(
            operator="op",
            manager="op/W",
            finalizer="example.com/w",
            client=cast("Any", None),
            router=self.router,
            key=Key(metadata.get("namespace", ""), metadata["name"]),
            emit=KeptEvents().record,
        )
        return token_of(handled, context=context)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the objects that are read from a store or decoded, each with `!` where it is decoded."""
    seen: list[str] = []
    get, decode, walk = Store.get, Item.decode, Store.__iter__

    def noting_get(self: Store, key: Key) -> Item | None:
        seen.append(key.name)
        return get(self, key)

    def noting_decode(self: Item) -> dict[str, Any]:
        seen.append(f"{self.meta.name}!")
        return decode(self)

    def noting_walk(self: Store) -> Any:
        seen.extend(item.meta.name for item in walk(self))
        return walk(self)

    monkeypatch.setattr(Store, "get", noting_get)
    monkeypatch.setattr(Item, "decode", noting_decode)
    monkeypatch.setattr(Store, "__iter__", noting_walk)
    return seen


def job(name: str, *, owner: str = "u-1", namespace: str = "default", version: int = 7, **labels: str) -> Resource:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "labels": {"bonny.dev/owner-uid": owner, **labels}}, "status": {"active": 1}}


def pod(name: str, node: str = "", *, namespace: str = "default", **labels: str) -> Resource:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


def names(found: Iterable[Resource]) -> list[str]:
    return [each["metadata"]["name"] for each in found]


# --- children ---------------------------------------------------------------------------------------------------------


def test_children_are_those_with_the_owners_label_in_the_order_of_their_names(watched: Watched) -> None:
    watched.jobs.show(job("b"), job("a"), job("other", owner="u-2"), job("far", namespace="a-namespace"))

    found = watched.axn().children(*JOBS)

    assert names(found) == ["far", "a", "b"]
    assert len(found) == 3
    assert found[1]["apiVersion"] == "batch/v1"
    assert found[1]["kind"] == "Job"
    assert names(found[1:]) == ["a", "b"]
    assert not watched.axn(widget() | {"metadata": {"name": "w9", "uid": "u-9"}}).children(*JOBS)


def test_a_child_is_a_copy_that_the_handler_may_change(watched: Watched) -> None:
    watched.jobs.show(job("a"))
    found = watched.axn().children(*JOBS)

    found[0]["status"]["active"] = 0

    assert found[0]["status"] == {"active": 1}


@pytest.mark.parametrize("selector", ["app=x,tier!=y", {"app": "x"}, {"matchLabels": {"app": "x"}}])
def test_a_selector_compares_labels_and_decodes_nothing(watched: Watched, looked: list[str], selector: Any) -> None:
    watched.jobs.show(job("a", app="x"), job("b", app="y"), job("c"))
    looked.clear()

    found = watched.axn().children(*JOBS, selector=selector)

    assert len(found) == 1
    assert not [name for name in looked if name.endswith("!")]
    assert names(found) == ["a"]
    assert looked[-1] == "a!"


def test_a_thousand_children_cost_what_they_are_and_not_what_the_cache_holds(
    watched: Watched, looked: list[str]
) -> None:
    watched.jobs.show(*(job(f"mine-{number:04}") for number in range(1_000)))
    watched.jobs.show(*(job(f"other-{number}", owner=f"u-{number + 2}") for number in range(9_000)))
    looked.clear()

    found = watched.axn().children(*JOBS)

    assert len(found) == 1_000
    assert sorted(looked) == [f"mine-{number:04}" for number in range(1_000)]
    assert found[17]["metadata"]["name"] == "mine-0017"
    assert looked[1_000:] == ["mine-0017!"]


def test_a_kind_that_is_not_owned_has_no_children(watched: Watched) -> None:
    with pytest.raises(OptionError, match=r"Pod \(v1\) cannot be a child: add Owned\('v1', 'Pod'\) to the controller"):
        watched.axn().children("v1", "Pod")
    with pytest.raises(OptionError, match="is not a label selector"):
        watched.axn().children(*JOBS, selector="app in x")


def test_children_are_unknown_while_their_watch_is_not_up_to_date(watched: Watched) -> None:
    watched.jobs.show(job("a"))
    watched.jobs.current = False

    with pytest.raises(Retry, match="the children of kind Job are unknown: the watch is not up to date"):
        watched.axn().children(*JOBS)


def test_children_are_unknown_while_the_watch_of_one_namespace_is_not_up_to_date() -> None:
    watched = Watched(jobs=[Still(JOB, "default"), outdated := Still(JOB, "far")])
    watched.jobs.show(job("a"))
    outdated.current = False

    with pytest.raises(Retry, match="the children of kind Job are unknown"):
        watched.axn().children(*JOBS)


def test_a_child_is_observed_by_whichever_of_two_selectors_shows_it() -> None:
    first, second = (Owned("batch/v1", "Job", label_selector=f"app={app}") for app in ("x", "y"))
    widgets, empty, shows = Still(WIDGET), Still(first), Still(second)
    watched = Watched()
    watched.router = Router(primary=[widgets], owned={first: [empty], second: [shows]}, on_status=False)
    shows.show(job("a", app="y"))

    found = watched.axn().observed({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}})

    assert found is not None
    assert found["metadata"]["uid"] == "uid-a"


def test_an_owner_with_a_namespace_observes_objects_that_have_none(watched: Watched) -> None:
    watched.nodes.show({"metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}})

    found = watched.axn().observed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})

    assert found is not None
    assert found["metadata"]["uid"] == "u"


def test_a_child_that_is_nested_too_deeply_can_be_counted_and_not_read(watched: Watched) -> None:
    watched.jobs.store.apply(
        Put(Item(decode_item(msgspec.json.encode(job("a"))).meta, b'{"a":' * 500 + b"1" + b"}" * 500), live=True)
    )

    found = watched.axn().children(*JOBS)

    assert len(found) == 1
    with pytest.raises(InvalidObject, match="nested deeper"):
        found[0]


def test_a_thread_may_list_while_the_watch_goes_on(watched: Watched) -> None:
    """A `def` handler runs in a thread; the store changes meanwhile."""
    watched.jobs.show(*(job(f"j-{number}") for number in range(500)))
    failures: list[BaseException] = []
    over = threading.Event()

    def lists() -> None:
        try:
            while not over.is_set():
                assert len(watched.axn().children(*JOBS)) >= 500
                watched.axn().related(*JOBS)
        except BaseException as error:  # noqa: BLE001  shown by the test
            failures.append(error)

    thread = threading.Thread(target=lists)
    thread.start()
    watched.jobs.show(*(job(f"k-{number}") for number in range(3_000)))
    over.set()
    thread.join()
    assert failures == []


# --- own writes -------------------------------------------------------------------------------------------------------


def write(watched: Watched, axn: Reconcile[Any], name: str, *, version: int) -> None:
    """A descendant is applied, and the API server answers with `version`."""
    key = Key("default", name)
    with axn.context.writing(JOB, key) as wrote:
        wrote(str(version))
    axn.context.applied_records[JOB, key] = AppliedRecord(b"", f"uid-{name}", str(version), b"")


def test_a_child_that_was_written_and_is_not_shown_yet_is_never_missing(watched: Watched) -> None:
    """The key waits until the watch shows it; a handler that runs before that, after 5 s, gets no list without it."""
    key = Key("default", "w1")
    write(watched, watched.axn(), "a", version=20)
    watched.router.queue.add(key, cast("Any", "child"), now=0.0)
    work = watched.router.queue.take(now=1e9)
    assert work is not None
    assert watched.router.own_writes.park(key, now=0.0), "the handler does not run"
    assert watched.router.queue.take(now=BARRIER_SECONDS) is not None
    assert not watched.router.own_writes.park(key, now=BARRIER_SECONDS), "the handler runs: it has waited long enough"

    with pytest.raises(Retry, match="unknown"):
        watched.axn().children(*JOBS)
    watched.jobs.show(job("other", owner="u-2", version=19))
    with pytest.raises(Retry, match="unknown"):
        watched.axn().children(*JOBS)
    watched.jobs.show(job("a", version=20))

    assert names(watched.axn().children(*JOBS)) == ["a"]


async def test_a_child_that_was_written_is_not_forgotten_by_a_reconcile_that_did_not_list(watched: Watched) -> None:
    write(watched, watched.axn(), "a", version=20)

    await ApplyDescendants()(watched.axn())

    with pytest.raises(Retry, match="unknown"):
        watched.axn().children(*JOBS)
    watched.jobs.show(job("a", version=20))
    await ApplyDescendants()(watched.axn())
    assert watched.axn().context.applied_records == {}


def queued(watched: Watched) -> list[Key]:
    """Takes all that is queued, and ends the work on it."""
    keys = []
    while (work := watched.router.queue.take(now=1e9)) is not None:
        watched.router.queue.done(work.key, now=1e9)
        keys.append(work.key)
    return keys


def test_a_change_after_a_write_that_failed_queues_the_owner(watched: Watched) -> None:
    """Events are held only while a write is under way."""
    queued(watched)
    with pytest.raises(ValueError, match="refused"), watched.axn().context.writing(JOB, Key("default", "a")):
        raise ValueError("refused")

    watched.jobs.show(job("a", version=20))

    assert queued(watched) == [Key("default", "w1")]


@pytest.mark.parametrize("verb", ["apply", "delete"])
def test_a_reconcile_that_wrote_counts_as_such_also_when_its_last_write_changes_nothing(
    watched: Watched, verb: str
) -> None:
    axn = watched.axn()
    assert not axn.context.wrote
    if verb == "apply":
        write(watched, axn, "a", version=20)
    else:
        with axn.context.deleting(JOB, Key("default", "a"), "uid-a"):
            pass
    with axn.context.writing(JOB, Key("default", "b")):
        pass  # the answer has the version of another client's change

    assert axn.context.wrote


def test_each_of_two_names_that_foreign_objects_have_queues_the_owner(watched: Watched) -> None:
    context = watched.axn().context
    for name in ("a", "b"):
        context.wait_for_name(JOB, Key("default", name))
    queued(watched)

    for name in ("a", "b"):
        watched.jobs.show(job(name, owner="u-foreign"))
        assert queued(watched) == [Key("default", "w1")]


@pytest.mark.parametrize("error", [ValueError(), asyncio.CancelledError()])
def test_an_owner_does_not_wait_for_a_deletion_that_failed_or_was_cancelled(
    watched: Watched, error: BaseException
) -> None:
    key = Key("default", "w1")
    watched.jobs.show(job("a"))
    with pytest.raises(type(error)), watched.axn().context.deleting(JOB, Key("default", "a"), "uid-a"):
        raise error
    watched.router.queue.add(key, Reason.CHANGED, now=0.0)
    assert watched.router.queue.take(now=1e9) is not None

    assert not watched.router.own_writes.park(key, now=1e9)


def test_an_owned_object_is_not_up_to_date_while_its_watch_fails(watched: Watched) -> None:
    """The watch was in sync before, and the object may have changed since."""
    watched.jobs.show(job("a"))
    shown = watched.jobs.store.get(Key("default", "a"))
    context = watched.axn().context
    assert context.observe(JOB, Key("default", "a")) == (shown, True)

    watched.jobs.error = StreamError(ErrorKind.SERVER, "list", 503, "unavailable", since=0.0)

    assert context.observe(JOB, Key("default", "a")) == (shown, False)


def test_what_another_owner_wrote_holds_up_nobody(watched: Watched) -> None:
    other = widget() | {"metadata": {"name": "w2", "namespace": "default", "uid": "u-2"}}
    write(watched, watched.axn(other), "a", version=20)

    assert names(watched.axn().children(*JOBS)) == []


@given(versions=st.lists(st.integers(1, 30), min_size=1, max_size=5), shown=st.integers(0, 30))
def test_a_list_has_every_own_write_or_there_is_none(versions: list[int], shown: int) -> None:
    """Each of the children was written once; the watch has come as far as `shown`."""
    watched = Watched()
    wanted = {f"j{number}": version for number, version in enumerate(versions)}
    for name, version in wanted.items():
        write(watched, watched.axn(), name, version=version)
    watched.jobs.show(*(job(name, version=version) for name, version in wanted.items() if version <= shown))
    watched.jobs.newest = shown

    try:
        found = names(watched.axn().children(*JOBS))
    except Retry:
        assert max(versions) > shown
    else:
        assert found == sorted(wanted)


# --- looked at --------------------------------------------------------------------------------------------------------


def config_map(name: str, **metadata: Any) -> Resource:
    known = {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": "5"}
    labels = {"bonny.dev/owner-uid": "u-1"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**known, "labels": labels, **metadata}}
    return owned(made, {"f:data": {}})


class Lists(Script):
    """A script whose handler finds the children of the script."""

    def children_of(self, gvk: tuple[str, str], owner_uid: str, *, selector: str) -> list[Resource]:
        return list(self._children)

    def keys_of_children(self, gvk: tuple[str, str], owner_uid: str) -> frozenset[Key]:
        return frozenset(Key(each["metadata"]["namespace"], each["metadata"]["name"]) for each in self._children)

    def is_shown(self, kind: Kind, key: Key) -> bool:
        return True


async def pruned(axn: Reconcile[Any], script: Script) -> list[str]:
    """The names of what is pruned after the handler registered what it did."""
    axn.applied = set()
    await run_step(axn, PruneDescendants())
    return [sent[1].name for verb, sent in script.requests if verb == "delete"]


def pruning(*children: Resource, deletes: int, owns: Owned = CONFIG_MAP) -> tuple[Reconcile[Any], Lists]:
    script = Lists(widget(), *[None] * deletes, children=children)
    script.owns = (owns,)
    return scripted(script, widget(), controller=_Prunes()), script


class _Prunes(Controller[Any]):
    """Has `reconcile` alone, so what it does not register is pruned."""

    async def reconcile(self, axn: Axn[Any]) -> None: ...


@pytest.mark.parametrize("lists", [True, False])
async def test_a_handler_that_listed_children_runs_again_when_one_was_added_or_pruned(lists: bool) -> None:
    for answer in (config_map("new"), None):
        axn, script = pruning(config_map("old"), deletes=1)
        if lists:
            axn.children("v1", "ConfigMap")
        if answer is None:
            assert await pruned(axn, script) == ["old"]
        else:
            script._answers = [answer]
            axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}})
            await ApplyDescendants()(axn)
            assert [verb for verb, _ in script.requests] == ["apply"]
        assert axn.outdated is lists


async def test_a_handler_that_observed_a_child_runs_again_when_it_was_pruned() -> None:
    """Regression: only an apply counted, so a status could go on telling of a child that had been pruned."""
    axn, script = pruning(config_map("old"), deletes=1)
    script.observed = lambda _: None  # type: ignore[attr-defined]
    axn.observed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}})

    assert await pruned(axn, script) == ["old"]
    assert axn.outdated


# --- what stays -------------------------------------------------------------------------------------------------------


async def test_what_is_kept_is_neither_applied_nor_pruned() -> None:
    axn, script = pruning(config_map("a"), config_map("b"), deletes=1)
    (kept, *_) = axn.children("v1", "ConfigMap")
    axn.keep_descendant(kept)

    assert axn.descendants == []
    assert await pruned(axn, script) == ["b"]


async def test_a_child_that_appeared_after_the_list_is_not_pruned() -> None:
    """The handler could not keep it. On a real server: tests/integration/test_children.py."""
    axn, script = pruning(config_map("a"), config_map("late"), deletes=1)
    both, script._children = script._children, script._children[:1]
    axn.children("v1", "ConfigMap")
    script._children = both
    axn.children("v1", "ConfigMap")  # with another selector it may be missing here, too

    assert await pruned(axn, script) == ["a"]
    assert axn.outdated


async def test_a_child_without_a_namespace_in_its_name_can_be_kept() -> None:
    axn, script = pruning(config_map("a"), deletes=0)
    axn.keep_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

    assert await pruned(axn, script) == []


async def test_children_of_a_kind_that_is_not_pruned_stay() -> None:
    axn, script = pruning(config_map("a"), deletes=0, owns=Owned("v1", "ConfigMap", prune=False))
    script.children = lambda _: [(script.owns[0], decode_item(msgspec.json.encode(config_map("a"))))]  # type: ignore[method-assign]

    assert await pruned(axn, script) == []


async def test_of_two_declarations_of_a_kind_the_one_that_protects_a_child_counts() -> None:
    axn, script = pruning(config_map("a"), config_map("b"), deletes=1)
    items = [decode_item(msgspec.json.encode(config_map(name))) for name in ("a", "b")]
    protects = Owned("v1", "ConfigMap", label_selector="keep=yes", prune=False)
    script.children = lambda _: [(CONFIG_MAP, items[0]), (CONFIG_MAP, items[1]), (protects, items[0])]  # type: ignore[method-assign]

    assert await pruned(axn, script) == ["b"]


def test_what_cannot_be_observed_is_refused_with_the_line_to_add(watched: Watched) -> None:
    with pytest.raises(
        OptionError, match=r"CronJob default/j cannot be observed: add Owned\('batch/v1', 'CronJob'\) to"
    ):
        watched.axn().observed({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}})


def test_what_cannot_be_kept_is_refused(watched: Watched) -> None:
    axn = watched.axn()
    with pytest.raises(OptionError, match="a descendant needs apiVersion, kind and"):
        axn.keep_descendant({"kind": "Job"})
    with pytest.raises(OptionError, match="Jobs j cannot be kept: its kind is not in the controller's `owns`"):
        axn.keep_descendant({"apiVersion": "batch/v1", "kind": "Jobs", "metadata": {"name": "j"}})
    axn.close()
    with pytest.raises(AlreadyApplied):
        axn.keep_descendant({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}})


# --- related objects --------------------------------------------------------------------------------------------------


def test_related_objects_are_those_of_the_own_namespace_unless_all_are_asked_for(watched: Watched) -> None:
    watched.pods[0].show(pod("b", app="x"), pod("a", app="y"), pod("far", namespace="far", app="x"))
    watched.nodes.show({"metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}})
    axn = watched.axn()

    assert names(axn.related("v1", "Pod")) == ["a", "b"]
    assert names(axn.related("v1", "Pod", selector="app in (x)")) == ["b"]
    assert names(axn.related("v1", "Pod", namespace="far")) == ["far"]
    assert names(axn.related("v1", "Pod", namespace="*")) == ["a", "b", "far"]
    assert names(axn.related("v1", "Node")) == ["n1"], "has no namespace"
    cluster_scoped = widget() | {"metadata": {"name": "w1", "uid": "u-1"}}
    assert names(watched.axn(cluster_scoped).related("v1", "Pod")) == ["a", "b", "far"]


def test_owned_objects_can_be_selected_whoever_owns_them(watched: Watched) -> None:
    watched.jobs.show(job("mine", app="x"), job("other", owner="u-2", app="x"), job("third", app="y"))

    assert names(watched.axn().related(*JOBS, selector={"app": "x"})) == ["mine", "other"]


def test_an_index_finds_objects_without_a_look_at_the_others(
    watched: Watched, looked: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    watched.pods[0].show(*(pod(f"p-{number}", "n1" if number % 100 == 0 else "n2", app="a") for number in range(1_000)))
    looked.clear()

    found = watched.axn().related("v1", "Pod", index=("node", "n1"))

    assert len(found) == 10
    assert sorted(looked) == sorted(f"p-{number}" for number in range(0, 1_000, 100))
    assert len(watched.axn().related("v1", "Pod", index=("app", "a"))) == 1_000
    assert names(watched.axn().related("v1", "Pod", index=("node", "none"))) == []
    watched.pods[0].show(pod("p-0", "n2") | {"metadata": pod("p-0")["metadata"] | {"resourceVersion": "8"}})
    assert len(watched.axn().related("v1", "Pod", index=("node", "n1"))) == 9
    assert len(watched.axn().related("v1", "Pod", index=("app", "a"))) == 999


@pytest.mark.parametrize("wrong", [lambda pod: pod["spec"]["nodeName"], lambda _: "n1", lambda _: [1], lambda _: None])
def test_a_function_of_an_index_that_is_wrong_harms_no_other_object(
    wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    related = Related("v1", "Pod", keys=lambda _: [], indexes={"by": wrong, "app": "app"})
    pods = Still(related)
    router = Router(primary=[Still(WIDGET)], owned={}, related={related: [pods]}, on_status=False)
    pods.show(pod("p", app="x"))

    assert [item.meta.name for item in pods.store.items(router.indexes.named(related.gvk, "app")[pods], "x")] == ["p"]
    assert router.indexes.named(related.gvk, "by").keys() == {pods}
    assert "a function of Related failed" in caplog.text


def test_what_is_not_watched_cannot_be_listed() -> None:
    one = Still(POD, "default")
    axn = Watched(pods=[one]).axn()
    for options, asked in (
        ({"namespace": "far"}, "namespace 'far'"),
        ({"index": ("zone", "a")}, "index 'zone'"),
    ):
        with pytest.raises(OptionError, match=rf"Pod \(v1\) is not watched with the {asked}: declare that"):
            axn.related("v1", "Pod", **options)
    with pytest.raises(OptionError, match=r"Secret \(v1\) is not watched with the namespace 'default'"):
        axn.related("v1", "Secret")
    one.synced = False
    with pytest.raises(Retry, match="the objects of kind Pod are unknown: their first list is not complete"):
        axn.related("v1", "Pod")


def test_related_objects_are_unknown_until_the_first_list_of_each_namespace_is_complete() -> None:
    watched = Watched(pods=[Still(POD, "default"), incomplete := Still(POD, "far")])
    watched.pods[0].show(pod("a", app="x"))
    incomplete.synced = False

    with pytest.raises(Retry, match="the objects of kind Pod are unknown"):
        watched.axn().related("v1", "Pod", namespace="*")
    assert names(watched.axn().related("v1", "Pod", namespace="default")) == ["a"]


def test_an_empty_namespace_of_related_objects_is_not_all_namespaces(watched: Watched) -> None:
    """Regression: a namespace that a user left empty led the handler across all namespaces."""
    axn = watched.axn()

    with pytest.raises(OptionError, match="the namespace of related objects is empty"):
        axn.related("v1", "Pod", namespace="")
    assert list(axn.related("v1", "Pod", namespace="*x")) == []


def test_only_keys_decide_which_related_objects_wake(watched: Watched) -> None:
    """A look at a Pod does not connect it with the handler: `Related.keys` does."""
    watched.pods[0].show(pod("p", app="nobody"))
    assert names(watched.axn().related("v1", "Pod")) == ["p"]
    while (work := watched.router.queue.take(now=1e9)) is not None:
        watched.router.queue.done(work.key, now=1e9)

    watched.pods[0].show(pod("q", app="nobody"))
    assert watched.router.queue.take(now=1e9) is None
    watched.pods[0].show(pod("r", app="w1"))
    assert watched.router.queue.take(now=1e9) is not None
