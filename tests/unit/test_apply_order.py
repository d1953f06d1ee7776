"""Apply order: what comes after something unready waits, and goes first when the owner is deleted; no server."""

from __future__ import annotations

from typing import Any

import pytest

from bonny import Axn, Controller, Owned, Resource
from bonny.core.fields import digest
from bonny.core.records import Action, AppliedRecord
from bonny.errors import BonnyError, OptionError
from bonny.pipeline import Pipeline, run_step
from bonny.resource import Key
from bonny.steps import ApplyDescendants, Finalizer, PruneDescendants
from bonny.steps.apply_descendants import prepared
from bonny_dev import testing
from tests.support.steps import CONFIG_MAP, Script, item, owned, token
from tests.support.widget import Widget, widget

LABELS = {"app.kubernetes.io/managed-by": "op", "bonny.dev/owner-uid": "u-1"}
ORDER = "bonny.dev/apply-order"


def config_map(name: str, **data: str) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def bare(name: str) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def is_up(resource: Resource) -> bool:
    return bool(resource["data"].get("state") == "up")


class AppController(Controller[Widget]):
    """A database, a migration after it, and an application after both."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        database, migration = config_map("database"), config_map("migration")
        axn.register_descendant(config_map("app"), after=[database, migration], when=is_up)
        axn.register_descendant(migration, after=database, when=is_up)
        axn.register_descendant(database)


# --- what a user tests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("observed", "waiting"),
    [
        ([], "waiting for ConfigMap default/database"),
        ([config_map("database", state="down")], "waiting for ConfigMap default/database"),
        ([config_map("database", state="up")], "waiting for ConfigMap default/migration"),
        ([config_map("database", state="up"), config_map("migration", state="up")], None),
        # What is there already as it is registered waits for nothing.
        ([config_map("app"), config_map("migration")], None),
    ],
)
async def test_a_handler_test_says_what_is_waited_for(observed: list[Resource], waiting: str | None) -> None:
    handled = await testing.handle(AppController, widget(), observed=observed)

    assert handled.waiting == waiting
    names = [each["metadata"]["name"] for each in handled.descendants]
    assert names == ["database", "migration", "app"], "in the order in which they are applied"


async def is_up_later(resource: Resource) -> bool:
    return is_up(resource)


def test_a_refused_registration_leaves_the_earlier_one() -> None:
    """Regression: an `after` without a name was a KeyError, and an `async def` as `when` dropped the earlier one."""
    axn = token(Script())
    axn.register_descendant(config_map("b"))
    with pytest.raises(OptionError, match="is an `async def`"):
        axn.register_descendant(config_map("b"), after=config_map("a"), when=is_up_later)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a descendant needs apiVersion, kind and metadata"):
        axn.register_descendant(config_map("b"), after={"apiVersion": "v1", "kind": "ConfigMap"})
    assert axn.descendants == [config_map("b")]


def test_an_impossible_order_is_refused_by_the_names() -> None:
    a, b = config_map("a"), config_map("b")
    axn = token(Script())
    for options, sentence in (
        ({"after": a, "group": 1}, "ConfigMap b: give after= with or without when=, or group= without both"),
        ({"when": is_up}, "ConfigMap b: give after="),
    ):
        with pytest.raises(OptionError, match=sentence):
            axn.register_descendant(b, **options)
    axn.register_descendant(b, after=a)
    with pytest.raises(
        OptionError, match="ConfigMap default/b comes after ConfigMap default/a, which is not registered"
    ):
        _ = axn.descendants
    axn.register_descendant(a, after=[b])
    with pytest.raises(OptionError, match=r"objects cannot come after each other: ConfigMap default/[ab] after "):
        _ = axn.descendants


def test_a_readiness_that_would_have_to_be_awaited_is_refused() -> None:
    async def is_ready(resource: Resource) -> bool:
        return True

    with pytest.raises(OptionError, match="`async def`"):
        token(Script()).register_descendant(config_map("b"), after=config_map("a"), when=is_ready)  # type: ignore[arg-type]


def test_groups_come_one_after_the_other_and_what_has_an_after_is_in_none_of_them() -> None:
    axn = token(Script())
    axn.register_descendant(config_map("z"), after=config_map("last"))
    axn.register_descendant(config_map("last"), group=3)
    axn.register_descendant(config_map("middle"))
    axn.register_descendant(config_map("first"), group=-1)

    groups = [[each.resource["metadata"]["name"] for each in group] for group in axn.descendant_groups()]
    assert groups == [["first"], ["middle"], ["last"], ["z"]]


# --- what is sent -----------------------------------------------------------------------------------------------------


def live(name: str, *, order: int = 0, version: str = "5", **data: str) -> Resource:
    """The child as the cluster holds it after our apply, but for the data, which nobody owns."""
    return owned(stored(name, order=order, version=version, **data), {"f:metadata": FIELDS | ANNOTATED[bool(order)]})


FIELDS: Resource = {
    "f:labels": {f"f:{label}": {} for label in LABELS},
    "f:ownerReferences": {'k:{"uid":"u-1"}': {}},
}
ANNOTATED: dict[bool, Resource] = {True: {"f:annotations": {f"f:{ORDER}": {}}}, False: {}}


def wanted(name: str, *, order: int = 0) -> Resource:
    """What is sent for the child `name`."""
    axn = token(Script())
    axn.register_descendant(bare(name), group=order)
    return prepared(axn, CONFIG_MAP, *axn._descendants.values())


def stored(name: str, *, order: int = 0, version: str = "5", **data: str) -> Resource:
    made = wanted(name, order=order)
    return {**made, "metadata": {**made["metadata"], "uid": f"u-{name}", "resourceVersion": version}, "data": data}


async def applied(script: Script, *, more: bool = False) -> Any:
    """A pass of database <- app; returns the axn. `more`: and an object without an order."""
    axn = token(script, controller=AppController())
    axn.register_descendant(bare("database"))
    axn.register_descendant(bare("app"), after=bare("database"), when=is_up)
    if more:
        axn.register_descendant(bare("more"))
    await ApplyDescendants()(axn)
    await run_step(axn, PruneDescendants())
    return axn


def sent(script: Script) -> list[tuple[str, str]]:
    return [(verb, what["metadata"]["name"]) for verb, what in script.requests if verb == "apply"]


def record(script: Script, name: str, *, order: int = 0, version: str = "5") -> None:
    """What is remembered of our apply of the child as it is registered now."""
    key = (CONFIG_MAP, Key("default", name))
    script.applied_records[key] = AppliedRecord(digest(wanted(name, order=order)), f"u-{name}", version, b"")


async def test_what_comes_after_an_object_that_is_not_ready_waits_and_nothing_is_pruned() -> None:
    script = Script(children=[live("database", state="down"), live("dropped")])

    axn = await applied(script)

    assert (script.requests, axn.waiting, axn.applied) == ([], "waiting for ConfigMap default/database", None)
    assert not axn.outdated, "the change of the database wakes the owner"


async def test_it_is_applied_when_the_watch_shows_that_the_object_is_ready() -> None:
    script = Script(stored("app", order=1), children=[live("database", state="up")])

    axn = await applied(script)

    ((_, body),) = script.requests
    assert (body["metadata"]["name"], body["metadata"]["annotations"]) == ("app", {ORDER: "1"})
    assert (axn.waiting, len(axn.applied)) == (None, 2)


async def test_an_object_that_was_written_just_now_is_looked_at_again_when_the_watch_shows_the_write() -> None:
    """The live object says that it is up, but that was before it was changed."""
    stands = owned(stored("database", state="up"), {"f:metadata": {}})  # without the data that we own
    script = Script(owned(stored("database", version="9"), {"f:data": {}}), children=[stands])

    axn = await applied(script)

    assert (sent(script), axn.waiting) == ([("apply", "database")], "waiting for ConfigMap default/database")
    assert axn.outdated, "our own write does not wake the owner"


async def test_a_child_that_another_declaration_of_its_kind_shows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: with two selections of a kind in `owns`, what came after an object of the second waited for ever."""
    first, second = (Owned("v1", "ConfigMap", label_selector=f"tier={tier}") for tier in ("db", "app"))
    script = Script(stored("app", order=1), children=[live("database", state="up")])
    script.owns = (first, second)
    shown = [(second, item(each)) for each in script._children]
    monkeypatch.setattr(script, "children", lambda uid: shown)

    axn = await applied(script)

    assert (sent(script), axn.waiting) == ([("apply", "app")], None)


@pytest.mark.parametrize("stale", ["older than our last write", "not in sync"])
async def test_a_stale_view_is_not_believed(stale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(children=[live("database", state="up")])
    if stale == "not in sync":
        monkeypatch.setattr(script, "children", lambda uid: None)
    else:
        record(script, "database", version="6")

    axn = await applied(script)

    assert (script.requests, axn.waiting) == ([], "waiting for ConfigMap default/database")


async def test_what_was_applied_before_as_it_is_registered_is_put_back_although_it_comes_after_an_unready_object() -> (
    None
):
    script = Script(None, stored("app", order=1), children=[live("database", state="down")])
    record(script, "app", order=1)

    axn = await applied(script)

    assert sent(script) == [("apply", "app")], "somebody had deleted it"
    assert axn.waiting is None, "nothing is held back"


async def test_a_change_of_what_is_wanted_is_held_back() -> None:
    """A new version of an application must not start before its migration."""
    script = Script(children=[live("database", state="down"), stored("app", order=1)])
    record(script, "app", order=7)

    axn = await applied(script)

    assert (script.requests, axn.waiting) == ([], "waiting for ConfigMap default/database")
    assert len(script.applied_records) == 1, "what is known of it stays known"


async def test_others_are_applied_while_some_wait() -> None:
    script = Script(stored("more"), children=[live("database", state="down")])

    axn = await applied(script, more=True)

    assert (sent(script), axn.waiting) == ([("apply", "more")], "waiting for ConfigMap default/database")


async def test_what_comes_after_an_object_that_waits_waits_too_although_that_looks_ready() -> None:
    """The object in the middle is there in an old version, and ready in that."""
    script = Script(children=[live("database", state="down"), stored("middle", order=1, state="up")])
    axn = token(script, controller=AppController())
    database, middle, last = (bare(name) for name in ("database", "middle", "last"))
    axn.register_descendant(last, after=middle, when=is_up)
    axn.register_descendant(middle, after=database, when=is_up)
    axn.register_descendant(database)

    await ApplyDescendants()(axn)

    assert (script.requests, axn.waiting) == ([], "waiting for ConfigMap default/database")


async def test_without_a_readiness_what_comes_after_follows_at_once() -> None:
    script = Script(stored("a"), stored("b", order=1))
    axn = token(script, controller=AppController())
    axn.register_descendant(bare("b"), after=bare("a"))
    axn.register_descendant(bare("a"))

    await ApplyDescendants()(axn)

    assert (sent(script), axn.waiting) == ([("apply", "a"), ("apply", "b")], None)


async def test_a_readiness_that_raises_fails_the_step_whatever_it_raises() -> None:
    """Regression guard: raised in a task of its own, a SystemExit would end the event loop."""

    def exits(resource: Resource) -> bool:
        raise SystemExit(3)

    axn = token(Script(children=[live("database")]), controller=AppController())
    axn.register_descendant(bare("database"))
    axn.register_descendant(bare("app"), after=bare("database"), when=exits)

    with pytest.raises(BonnyError, match=r"sys\.exit was called"):
        await Pipeline([ApplyDescendants()]).run(axn)


# --- at the end -------------------------------------------------------------------------------------------------------


class Finalizing(AppController):
    """The same, with a finalizer."""

    async def finalize(self, axn: Axn[Widget]) -> None:
        """Nothing else to clean up."""


def child(name: str, order: object, **metadata: Any) -> Resource:
    """A child that the garbage collector would delete."""
    made = owned(stored(name), {"f:metadata": FIELDS})
    made["metadata"] |= {"annotations": {ORDER: order}, **metadata}
    return made


async def finalize(script: Script, *, finalizers: tuple[str, ...] = ("example.com/op",)) -> Any:
    shown = widget()
    shown["metadata"] |= {"finalizers": list(finalizers), "deletionTimestamp": "2026-01-01T00:00:00Z"}
    script._answers.insert(0, shown)
    axn = token(script, shown, action=Action.FINALIZE, controller=Finalizing())
    await Pipeline([Finalizer()]).run(axn)
    return axn


def deleted(script: Script) -> list[str]:
    return [sent[1].name for verb, sent in script.requests if verb == "delete"]


async def test_the_highest_level_is_deleted_first_and_the_finalizer_stays() -> None:
    script = Script(None, None, children=[child("a", "0"), child("b", "1"), child("c", "2"), child("d", "2")])
    script.wrote = True

    axn = await finalize(script)

    assert deleted(script) == ["c", "d"]
    assert "patch" not in [verb for verb, _ in script.requests]
    assert axn.waiting == "waiting for the deletion of ConfigMap default/c, ConfigMap default/d"
    assert axn.outdated, "our own deletion does not wake the owner"


async def test_children_of_another_controller_have_their_own_order() -> None:
    """Regression: a finalizer deleted what another controller, whose clean-up needed it, had registered last."""
    theirs = child("credentials", "1")
    theirs["metadata"]["managedFields"][0]["manager"] = "op/OtherController"
    gone = {**widget(), "metadata": {**widget()["metadata"], "resourceVersion": "8"}}
    script = Script(gone, children=[child("a", "0"), theirs])

    axn = await finalize(script)

    assert (deleted(script), axn.waiting) == ([], None)


async def test_only_what_this_controller_applied_is_deleted() -> None:
    """Regression: children without an owner reference were chosen by their label alone, also those of another
    controller and copies that nobody applied."""
    ours, theirs, copied = child("ours", "0"), child("credentials", "1"), child("copy", "0")
    theirs["metadata"]["managedFields"][0]["manager"] = "op/OtherController"
    del copied["metadata"]["managedFields"]
    for each in (ours, theirs, copied):
        del each["metadata"]["ownerReferences"]
    gone = {**widget(), "metadata": {**widget()["metadata"], "resourceVersion": "8"}}
    script = Script(None, gone, children=[ours, theirs, copied])

    await finalize(script)

    assert deleted(script) == ["ours"]


async def test_a_level_that_is_being_deleted_is_waited_for() -> None:
    going = child("b", "1", deletionTimestamp="2026-01-01T00:00:00Z")
    script = Script(children=[child("a", "0"), going])

    axn = await finalize(script)

    assert (deleted(script), axn.waiting) == ([], "waiting for the deletion of ConfigMap default/b")
    assert not axn.outdated, "or it would look again without a pause"


@pytest.mark.parametrize(
    "children", [[child("a", "0")], [child("a", "1"), child("b", "1")], [child("a", "no number")], []]
)
async def test_the_lowest_level_is_left_to_the_garbage_collector(children: list[Resource]) -> None:
    gone = {**widget(), "metadata": {**widget()["metadata"], "resourceVersion": "8"}}
    script = Script(gone, children=children)

    axn = await finalize(script)

    assert ([verb for verb, _ in script.requests], axn.waiting) == (["get", "patch"], None)


async def test_children_that_shall_become_orphans_are_not_deleted() -> None:
    """Regression: `kubectl delete --cascade=orphan` lost children whose owner reference was gone already."""
    gone = {**widget(), "metadata": {**widget()["metadata"], "resourceVersion": "8", "finalizers": ["orphan"]}}
    orphan = child("b", "1")
    del orphan["metadata"]["ownerReferences"]
    script = Script(gone, children=[child("a", "0"), orphan])

    await finalize(script, finalizers=("example.com/op", "orphan"))

    assert [verb for verb, _ in script.requests] == ["get", "patch"]
