"""Namespaces by their labels: they join and leave a running operator, and nothing is lost, touched or left open."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from bonny import Axn, Controller, List, Owned, Reconciler, Related, Resource
from bonny.engine.stream import Stream
from bonny.namespaces import NamespaceSelector
from bonny.namespaces.members import NamespacesRun
from bonny_dev.crd.definition import crds
from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox
from tests.support.extras import run_of
from tests.support.serving import Serving, serving
from tests.support.things import GROUP, MERGE, THING, Thing, config_map, names, operator_of, path_of, spec, thing

_numbers = count(1)
WITHIN = 60.0


@pytest.fixture(autouse=True)
def _kinds(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


class Noted:
    """A controller with a finalizer that notes what it handles."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        calls = self.calls

        class Noting(Controller[Thing]):
            owns = (Owned("v1", "ConfigMap"),)

            async def reconcile(self, axn: Axn[Thing]) -> None:
                calls.append((axn.action.value, str(axn.key)))
                axn.register_descendant(config_map(axn.key.name, size=str(axn.spec.size)))

            async def finalize(self, axn: Axn[Thing]) -> None:
                calls.append(("finalize", str(axn.key)))

        self.controller = Noting

    def of(self, key: str) -> list[str]:
        return [action for action, each in self.calls if each == key]


def labelled(sandbox: Sandbox, name: str, **labels: str | None) -> None:
    path = f"/api/v1/namespaces/{name}"
    answer = sandbox.request("PATCH", path, {"metadata": {"labels": labels}}, content_type=MERGE)
    assert answer.status == 200, answer.body


def new_namespaces(sandbox: Sandbox, number: int = 1, **labels: str) -> list[str]:
    made = [f"by-label-{next(_numbers)}" for _ in range(number)]
    for name in made:
        sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return made


def end_namespace(sandbox: Sandbox, name: str) -> None:
    """Delete it; no controller of namespaces runs here, so the test plays its part."""
    sandbox.request("DELETE", f"/api/v1/namespaces/{name}")
    live = sandbox.get("v1", "Namespace", name)
    assert live is not None
    sandbox.request("PUT", f"/api/v1/namespaces/{name}/finalize", {**live, "spec": {"finalizers": []}})
    sandbox.eventually(lambda: sandbox.get("v1", "Namespace", name) is None)


@contextmanager
def watching(sandbox: Sandbox, selector: str, *controllers: Any, **settings: Any) -> Iterator[Serving]:
    operator = operator_of(*controllers, watch=NamespaceSelector(selector))
    with serving(operator, sandbox.kubeconfig, watch_namespaces=(), extras=(operator.watch,), **settings) as at_work:
        yield at_work


def joined(at_work: Serving) -> set[str]:
    members = run_of(at_work.process, NamespacesRun).members
    return {name for name, member in dict(members).items() if member.state == "joined"}


def test_a_namespace_joins_and_leaves_without_a_restart(sandbox: Sandbox) -> None:
    noted, (inside, outside) = Noted(), new_namespaces(sandbox, 2)
    labelled(sandbox, inside, team="join")
    for name in (inside, outside):
        sandbox.apply(thing("t1", namespace=name))

    with watching(sandbox, "team in (join,other)", noted.controller) as at_work:
        sandbox.eventually(lambda: names(sandbox, inside) == {"t1"})
        assert joined(at_work) == {inside}

        labelled(sandbox, outside, team="other")
        sandbox.apply(thing("t2", namespace=outside))
        sandbox.eventually(lambda: names(sandbox, outside) == {"t1", "t2"})
        assert noted.of(f"{outside}/t1")[0] == "add"

        labelled(sandbox, outside, team=None)
        sandbox.eventually(lambda: joined(at_work) == {inside})
        sandbox.eventually(lambda: not any(outside in line for line in at_work.process.readiness().lines))
        before = noted.of(f"{outside}/t1")
        spec(sandbox, "t1", outside, size=5)
        sandbox.request("DELETE", path_of("t2", outside))
        spec(sandbox, "t1", inside, size=7)
        sandbox.eventually(lambda: "modify" in noted.of(f"{inside}/t1"))
        assert noted.of(f"{outside}/t1") == before, "what left is not touched"
        left = sandbox.get(*THING, "t2", namespace=outside)
        assert left is not None, "its finalizer stays"
        assert left["metadata"]["finalizers"]
        assert left["metadata"]["deletionTimestamp"]
        assert names(sandbox, outside) == {"t1", "t2"}

        labelled(sandbox, outside, team="join")
        sandbox.eventually(lambda: sandbox.get(*THING, "t2", namespace=outside) is None)
        sandbox.eventually(lambda: noted.of(f"{outside}/t1")[len(before) :] == ["add"])
        assert noted.of(f"{outside}/t2").count("finalize") == 1


def test_delete_is_called_for_objects_that_end_with_their_namespace_but_not_for_objects_that_leave(
    sandbox: Sandbox,
) -> None:
    deleted: list[str] = []

    class Deleting(Controller[Thing]):
        async def add(self, axn: Axn[Thing]) -> None: ...

        async def delete(self, axn: Axn[Thing]) -> None:
            deleted.append(str(axn.key))

    leaves, ends = new_namespaces(sandbox, 2, team="deleting")
    with watching(sandbox, "team=deleting", Deleting) as at_work:
        for name in (leaves, ends):
            sandbox.apply(thing("t1", namespace=name))
        (worker,) = at_work.process.workers
        sandbox.eventually(lambda: worker.handled == 2)
        labelled(sandbox, leaves, team=None)
        sandbox.request("DELETE", path_of("t1", ends))
        end_namespace(sandbox, ends)
        sandbox.eventually(lambda: not joined(at_work))
        sandbox.eventually(lambda: deleted == [f"{ends}/t1"])
    assert deleted == [f"{ends}/t1"]
    assert sandbox.get(*THING, "t1", namespace=leaves) is not None


def test_related_objects_and_reconcilers_follow_the_namespaces(sandbox: Sandbox) -> None:
    seen: list[tuple[str, bool]] = []
    listed: list[str] = []

    class Referring(Controller[Thing]):
        related = (Related("v1", "Secret", named_by=lambda thing: [(thing["spec"]["secret"], "s1")]),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1", "namespace": axn.spec.secret}}
            seen.append((axn.key.name, axn.observed(secret) is not None))

    class Listing(Reconciler):
        operation = List("v1", "Secret")
        frequency = 0.1

        async def reconcile(self, secret: Resource) -> None:
            listed.append(secret["metadata"]["namespace"])

    here, far = new_namespaces(sandbox, 2)
    labelled(sandbox, here, team="related")
    sandbox.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1", "namespace": far}})
    sandbox.apply(thing("t1", namespace=here, secret=far))
    with watching(sandbox, "team=related", Referring, Listing) as at_work:
        sandbox.eventually(lambda: seen == [("t1", False)])
        assert far not in listed
        labelled(sandbox, far, team="related")
        sandbox.eventually(lambda: seen == [("t1", False), ("t1", True)])
        sandbox.eventually(lambda: far in listed)
        labelled(sandbox, far, team=None)
        sandbox.eventually(lambda: joined(at_work) == {here})
        listed.clear()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s2", "namespace": here}}
        sandbox.apply(secret)
        sandbox.eventually(lambda: listed.count(here) > 2)
        assert far not in listed


def test_a_namespace_that_cannot_be_read_yet_holds_up_no_other(sandbox: Sandbox) -> None:
    noted, (granted, later) = Noted(), new_namespaces(sandbox, 2, team="granting")
    operator = operator_of(noted.controller, watch=NamespaceSelector("team=granting"))
    documents = bundle.documents(operator, namespace=operator.name, local=True, grant_in=[granted])
    for document in documents:
        sandbox.apply(document)
    identity = sandbox.service_account_kubeconfig(operator.name, operator.name)
    for name in (granted, later):
        sandbox.apply(thing("t1", namespace=name))
    with serving(operator, identity, watch_namespaces=(), extras=(operator.watch,)) as at_work:
        sandbox.eventually(lambda: names(sandbox, granted) == {"t1"})
        note = f"namespace {later}: joining"
        sandbox.eventually(lambda: any(line.startswith(note) for line in at_work.process.readiness().lines))
        assert at_work.process.readiness().ok
        (binding,) = [each for each in documents if each["metadata"].get("namespace") == granted]
        sandbox.apply({**binding, "metadata": {**binding["metadata"], "namespace": later}})
        sandbox.eventually(lambda: names(sandbox, later) == {"t1"}, within_seconds=WITHIN)


def test_it_starts_without_any_namespace_and_one_joins_later(sandbox: Sandbox) -> None:
    noted, (later,) = Noted(), new_namespaces(sandbox)
    sandbox.apply(thing("t1", namespace=later))
    with watching(sandbox, "team=none-yet", noted.controller) as at_work:
        assert at_work.process.readiness().ok
        assert "namespaces with team=none-yet: 0" in at_work.process.readiness().lines
        assert at_work.process.health().ok
        labelled(sandbox, later, team="none-yet")
        sandbox.eventually(lambda: names(sandbox, later) == {"t1"})
    assert noted.of(f"{later}/t1") == ["add"]


def test_a_namespace_that_is_made_again_under_the_same_name_is_another_one(sandbox: Sandbox) -> None:
    noted, (again, other) = Noted(), new_namespaces(sandbox, 2, team="again")
    with watching(sandbox, "team=again", noted.controller) as at_work:
        for name in (again, other):
            sandbox.apply(thing("t1", namespace=name))
            sandbox.eventually(lambda name=name: names(sandbox, name) == {"t1"})
        first = sandbox.get("v1", "Namespace", again)
        assert first is not None
        sandbox.request("DELETE", path_of("t1", again))
        sandbox.eventually(lambda: sandbox.get(*THING, "t1", namespace=again) is None)
        sandbox.delete("v1", "ConfigMap", "t1", namespace=again)
        end_namespace(sandbox, again)
        sandbox.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": again, "labels": {"team": "again"}}}
        )
        sandbox.apply(thing("t1", namespace=again))
        sandbox.eventually(lambda: names(sandbox, again) == {"t1"})
        sandbox.eventually(lambda: joined(at_work) == {again, other})
        member = run_of(at_work.process, NamespacesRun).members[again]
        assert member.uid != first["metadata"]["uid"]
        spec(sandbox, "t1", other, size=9)
        sandbox.eventually(lambda: sizes(sandbox, other)["t1"] == "9")
    assert noted.of(f"{again}/t1") == ["add", "finalize", "add"]


@pytest.mark.parametrize("stays", [True, False])
def test_of_a_label_that_changes_twice_in_a_moment_the_last_value_counts(sandbox: Sandbox, *, stays: bool) -> None:
    noted, (name, other), team = Noted(), new_namespaces(sandbox, 2), f"flip-{stays}".lower()
    first, last = (None, team) if stays else (team, None)
    labelled(sandbox, other, team=team)
    labelled(sandbox, name, team=last)
    for each in (name, other):
        sandbox.apply(thing("t1", namespace=each))
    with watching(sandbox, f"team={team}", noted.controller) as at_work:
        wanted = {name, other} if stays else {other}
        sandbox.eventually(lambda: joined(at_work) == wanted)
        for _ in range(5):
            labelled(sandbox, name, team=first)
            labelled(sandbox, name, team=last)
        sandbox.apply(thing("t2", namespace=other))
        sandbox.eventually(lambda: names(sandbox, other) == {"t1", "t2"})
        run = run_of(at_work.process, NamespacesRun)
        sandbox.eventually(lambda: joined(at_work) == wanted and len(run.streams) == 2 * len(wanted))
        if stays:
            sandbox.apply(thing("t2", namespace=name))
            sandbox.eventually(lambda: names(sandbox, name) == {"t1", "t2"})
        assert run.changes["joined"] - run.changes["left"] == len(wanted)


def test_a_namespace_that_becomes_forbidden_stops_no_other(sandbox: Sandbox) -> None:
    noted, (forbidden, other) = Noted(), new_namespaces(sandbox, 2, team="forbidding")
    operator = operator_of(noted.controller, watch=NamespaceSelector("team=forbidding"))
    documents = bundle.documents(operator, namespace=operator.name, local=True, grant_in=[forbidden, other])
    sandbox.apply(documents)
    (binding,) = [each for each in documents if each["metadata"].get("namespace") == forbidden]
    identity = sandbox.service_account_kubeconfig(operator.name, operator.name)
    with serving(operator, identity, watch_namespaces=(), extras=(operator.watch,)) as at_work:
        for name in (forbidden, other):
            sandbox.apply(thing("t1", namespace=name))
            sandbox.eventually(lambda name=name: names(sandbox, name) == {"t1"})
        sandbox.delete(binding["apiVersion"], "RoleBinding", binding["metadata"]["name"], namespace=forbidden)
        run = run_of(at_work.process, NamespacesRun)
        for stream in run.members[forbidden].streams:
            at_work.call(stream.distrust)
        sandbox.eventually(lambda: any(stream.blocked for stream in run.members[forbidden].streams))
        assert at_work.process.readiness().ok
        assert at_work.process.health().ok
        sandbox.apply(thing("t2", namespace=other))
        spec(sandbox, "t1", other, size=9)
        sandbox.eventually(lambda: names(sandbox, other) == {"t1", "t2"})
        sandbox.eventually(lambda: sizes(sandbox, other)["t1"] == "9")
        labelled(sandbox, forbidden, team=None)
        sandbox.eventually(lambda: joined(at_work) == {other})


class Loop:
    """Many namespaces with one object each, of which the first ones leave and join in rounds."""

    def __init__(self, sandbox: Sandbox, at_work: Serving, made: list[str], *, changing: int, team: str) -> None:
        self.sandbox, self.at_work, self.made, self.team = sandbox, at_work, made, team
        self.moving, self.staying = made[:changing], made[changing:]
        self.run = run_of(at_work.process, NamespacesRun)
        (self.worker,) = at_work.process.workers

    def eventually(self, condition: Callable[[], object]) -> None:
        self.sandbox.eventually(condition, within_seconds=WITHIN)

    def requests(self) -> int:
        return sum(self.at_work.process.client.requests.answers.values())

    def in_force(self, wanted: list[str]) -> None:
        """Wait until these namespaces take part, and nothing is due."""
        self.eventually(lambda: joined(self.at_work) == set(wanted))
        self.eventually(lambda: not self.worker.router.queue.ready and not self.worker.running)

    def leave(self) -> None:
        for name in self.moving:
            labelled(self.sandbox, name, team=None)
        self.in_force(self.staying)

    def join(self, *, new: str = "") -> None:
        for name in self.moving:
            labelled(self.sandbox, name, team=self.team)
            if new:
                self.sandbox.apply(thing(new, namespace=name))

    def has(self, wanted: set[str], *, in_: list[str]) -> None:
        for name in in_:
            self.eventually(lambda name=name: names(self.sandbox, name) == wanted)

    def has_size(self, size: int, *names: str) -> None:
        for name in names:
            self.eventually(lambda name=name: sizes(self.sandbox, name)["t1"] == str(size))


@pytest.mark.parametrize(
    ("number", "changing", "rounds"), [(12, 4, 3), pytest.param(300, 20, 3, marks=pytest.mark.slow)]
)
def test_namespaces_that_come_and_go_lose_nothing_and_leave_no_stream_open(
    sandbox: Sandbox, number: int, changing: int, rounds: int
) -> None:
    noted, team = Noted(), f"loop-{number}"
    made = new_namespaces(sandbox, number, team=team)
    for name in made:
        sandbox.apply(thing("t1", namespace=name))
    closed: weakref.WeakSet[Stream] = weakref.WeakSet()

    with watching(sandbox, f"team={team}", noted.controller) as at_work:
        loop = Loop(sandbox, at_work, made, changing=changing, team=team)
        loop.in_force(made)
        loop.has({"t1"}, in_=made)
        changed = (made[0], made[-1])
        for size in range(2, 2 + rounds):
            closed.update(stream for name in loop.moving for stream in loop.run.members[name].streams)
            before = loop.requests()
            loop.leave()
            loop.join()
            loop.in_force(made)
            # Of each: two lists, two watches, and the question whether it is gone. Its objects cost nothing.
            loop.eventually(lambda before=before: loop.requests() - before >= 5 * changing)
            assert loop.requests() - before == 5 * changing

            loop.leave()
            for name in changed:
                spec(sandbox, "t1", name, size=size)
            loop.join(new=f"n{size}")
            loop.has({"t1", *(f"n{each}" for each in range(2, size + 1))}, in_=loop.moving)
            loop.has_size(size, *changed)
            loop.in_force(made)
        assert len(loop.run.streams) == 2 * number
        assert loop.run.changes == {"joined": number + 2 * rounds * changing, "left": 2 * rounds * changing}
        gc.collect()
        opened = set(loop.run.streams)
        assert [stream for stream in closed if stream not in opened] == [], "closed streams are kept in memory"
        moving = set(loop.moving)
    assert {key for _, key in noted.calls} == {
        f"{name}/{each}"
        for name in made
        for each in ("t1", *(f"n{size}" for size in range(2, 2 + rounds) if name in moving))
    }


def sizes(sandbox: Sandbox, namespace: str) -> dict[str, str]:
    """The sizes in the ConfigMaps of a namespace."""
    return {
        each["metadata"]["name"]: each["data"]["size"]
        for each in sandbox.items("v1", "ConfigMap", namespace=namespace)
        if "size" in each.get("data", {})
    }
