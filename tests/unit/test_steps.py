"""Steps: what each of them sends, and on what it decides. What the API server makes of it is tested on one."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bonny import Controller, Owned, Resource
from bonny.axn import Axn
from bonny.client.api import Client
from bonny.client.errors import Conflict, Invalid, Unreachable, refusal
from bonny.client.transport import Answer
from bonny.core.fields import overridden, project
from bonny.core.fights import AT_ONCE
from bonny.core.objects import Cause, Failure
from bonny.core.records import Action, AppliedRecord
from bonny.errors import ALSO, AlreadyApplied, ForeignObject, Retry
from bonny.events import EventType
from bonny.kinds import Kind, Scope
from bonny.pipeline import Pipeline, failure_of, run_step
from bonny.resource import Key, owner_reference
from bonny.steps import Finalizer
from bonny.steps.apply_descendants import ApplyDescendants
from bonny.steps.apply_status import ApplyStatus
from bonny.steps.child import advise
from bonny.steps.prune_descendants import PruneDescendants
from tests.support.steps import CONFIG_MAP, MANAGER, Script, conflict, owned, token
from tests.support.widget import Widget, widget

PHASE = {"f:status": {"f:phase": {}}}
COUNT = {"f:status": {"f:count": {}}}


class WidgetController(Controller[Widget]):
    """Owns ConfigMaps."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        """Nothing to do."""


class Finalizing(WidgetController):
    """The same, with a `finalize`."""

    async def finalize(self, axn: Axn[Widget]) -> None:
        """Do what no well-meaning handler does."""
        axn.resource["metadata"].clear()
        axn.resource.clear()


def live(resource: Resource | None = None, *, version: str = "7", **metadata: Any) -> Resource:
    """As the API server shows it, in that version."""
    shown = resource or widget()
    return {**shown, "metadata": {**shown["metadata"], "resourceVersion": version, **metadata}}


def config_map(**metadata: Any) -> Resource:
    named = {"name": "c", "namespace": "default", "uid": "u-c", "resourceVersion": "5"}
    labels = {"app.kubernetes.io/managed-by": "op", "bonny.dev/owner-uid": "u-1"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**named, "labels": labels, **metadata}, "data": {}}


def our_config_map(**metadata: Any) -> Resource:
    """As this controller applied it."""
    return owned(config_map(**metadata), {"f:data": {}})


def vandalise(axn: Axn[Any]) -> None:
    """Change everything of `axn.resource`, as a handler may."""
    axn.resource["metadata"].update(name="other", namespace="other", uid="u-other", generation=99, finalizers=[])
    axn.resource["metadata"].pop("resourceVersion", None)
    axn.resource["metadata"].pop("managedFields", None)
    axn.resource.update(apiVersion="other/v1", kind="Other", status={"phase": "new", "count": 99})


# --- status -----------------------------------------------------------------------------------------------------------


async def test_a_status_is_written_with_the_uid_and_the_version_that_it_was_decided_on() -> None:
    script = Script(live(version="8"))
    axn = token(script, live())
    axn.update_status(lambda status: {**status, "phase": "a"})

    await ApplyStatus()(axn)

    ((verb, sent),) = script.requests
    assert (verb, sent["metadata"]["uid"], sent["metadata"]["resourceVersion"]) == ("apply", "u-1", "7")


async def test_after_a_conflict_the_status_is_decided_on_what_stands_there_then() -> None:
    stands = owned({**live(version="9"), "status": {"count": 5}}, COUNT, subresource="status")
    script = Script(conflict(), stands, stands)
    axn = token(script, live())
    axn.update_status(lambda status: {**status, "count": status.get("count", 0) + 1})

    await ApplyStatus()(axn)

    assert [verb for verb, _ in script.requests] == ["apply", "get", "apply"]
    sent = script.requests[-1][1]
    assert (sent["status"]["count"], sent["metadata"]["resourceVersion"]) == (6, "9")


async def test_a_status_that_a_handler_wrote_into_its_copy_is_written() -> None:
    """Regression: it was compared with the copy, so it looked as if it were there already."""
    script = Script(live(version="8"))
    axn = token(script, owned({**live(), "status": {"phase": "a"}}, PHASE, subresource="status"))
    axn._version = None  # no `Reconciled` condition either, so the phase alone is a reason to write
    status = axn.resource["status"]
    status["phase"] = "b"
    axn.update_status(lambda _: status)

    await ApplyStatus()(axn)

    assert script.requests[0][1]["status"]["phase"] == "b"


async def test_what_a_handler_does_to_its_copy_changes_nothing_but_its_copy() -> None:
    """Regression: a popped managedFields made the status from nothing; a popped version took the precondition away."""
    script = Script(live(version="8"))
    shown = owned({**live(), "status": {"count": 3}}, COUNT, subresource="status")
    axn = token(script, shown)
    vandalise(axn)
    axn.update_status(lambda status: {**status, "count": status.get("count", 0) + 1})
    axn.set_condition("Ready", True)

    await ApplyStatus()(axn)

    ((_, sent),) = script.requests
    named = {"name": "w1", "namespace": "default", "uid": "u-1", "resourceVersion": "7"}
    assert (sent["apiVersion"], sent["kind"], sent["metadata"]) == ("example.com/v1", "Widget", named)
    assert sent["status"]["count"] == 4
    assert {known["observedGeneration"] for known in sent["status"]["conditions"]} == {4}


async def test_the_children_of_a_handler_that_changed_its_copy_are_those_of_the_real_object() -> None:
    script = Script(config_map())
    axn = token(script, live(), controller=WidgetController())
    axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    vandalise(axn)

    await ApplyDescendants()(axn)

    metadata = script.requests[0][1]["metadata"]
    (reference,) = metadata["ownerReferences"]
    assert (metadata["namespace"], metadata["labels"]["bonny.dev/owner-uid"]) == ("default", "u-1")
    assert reference == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "name": "w1",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


async def test_the_events_of_a_handler_that_changed_its_copy_are_about_the_real_object() -> None:
    script = Script()
    axn = token(script, live())
    axn.failure_event(message="no")
    vandalise(axn)

    await Pipeline([]).run(axn)

    ((regarding, event),) = script.recorded
    assert (regarding["kind"], regarding["metadata"]["name"], regarding["metadata"]["uid"]) == ("Widget", "w1", "u-1")
    assert event.type == EventType.WARNING


@pytest.mark.parametrize(
    ("stands", "wanted", "written"),
    [(1, True, True), (False, 0, True), (True, True, False), (1, 1.0, False), ([1, {"a": 0}], [1, {"a": False}], True)],
)
async def test_a_status_is_written_when_only_a_type_differs(stands: Any, wanted: Any, written: bool) -> None:
    """Regression: to Python, True is 1. 1.0 is 1 to the API server, too, which stores it as 1."""
    script = Script(live(version="8"))
    axn = token(script, owned({**live(), "status": {"phase": stands}}, PHASE, subresource="status"))
    axn._version = None  # without the runtime's own condition
    axn.update_status(lambda _: {"phase": wanted})

    await ApplyStatus()(axn)

    assert bool(script.requests) is written


TOO_LARGE = refusal(Failure(413, "RequestEntityTooLarge", ""), verb="apply", resource="widgets/status default/w1")


async def test_a_status_that_is_too_large_is_reported_in_a_condition_and_nothing_counts_as_observed() -> None:
    """Regression: the step that reports was the one that failed, so only the log said it."""
    script = Script(TOO_LARGE, live(version="8"))
    stands = owned({**live(), "status": {"phase": "a"}}, PHASE, subresource="status")
    axn = token(script, stands)
    axn.update_status(lambda status: {**status, "phase": "x" * 100})

    with pytest.raises(Invalid):
        await Pipeline([ApplyStatus()]).run(axn)

    status = script.requests[-1][1]["status"]
    (condition,) = status["conditions"]
    assert (status["phase"], condition["type"], condition["status"], condition["reason"]) == (
        "a",
        "Reconciled",
        "False",
        "Invalid",
    )
    assert "observedGeneration" not in status


# --- descendants ------------------------------------------------------------------------------------------------------


def wanting(script: Script, **options: Any) -> Axn[Any]:
    axn = token(script, live(), controller=WidgetController())
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": options.pop("data", {"a": 1})}
    axn.register_descendant(child, **options)
    return axn


async def test_an_apply_to_what_exists_names_its_uid() -> None:
    script = Script(config_map(resourceVersion="6"), children=[our_config_map()])

    await ApplyDescendants()(wanting(script))

    ((verb, sent),) = script.requests
    assert (verb, sent["metadata"]["uid"]) == ("apply", "u-c")


async def test_a_child_of_an_earlier_owner_that_is_being_deleted_needs_nothing_to_be_done() -> None:
    """Regression: after its owner was re-created, the advice was to rename, to delete or to adopt what was going."""
    earlier = {**owner_reference(live()), "uid": "u-0"}
    going = config_map(
        labels={"bonny.dev/owner-uid": "u-0"}, ownerReferences=[earlier], deletionTimestamp="2026-03-01T12:00:00Z"
    )
    axn = token(Script(children=[going]), live(), controller=WidgetController())
    axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    sentence = (
        "ConfigMap default/c exists and is not ours (it belongs to an earlier Widget w1): it is being deleted, and "
        "ours is created once it is gone"
    )
    with pytest.raises(ForeignObject, match=f"^{re.escape(sentence)}$"):
        await ApplyDescendants()(axn)


@pytest.mark.parametrize(("stands", "applied"), [(1, True), (True, False), (1.0, True)])
async def test_a_child_is_applied_when_only_a_type_differs(stands: Any, applied: bool) -> None:
    """Regression: a child with 1 where True is wanted was never put right."""
    labels = {"f:app.kubernetes.io/managed-by": {}, "f:bonny.dev/owner-uid": {}}
    references = {'k:{"uid":"u-1"}': {}}
    fields = {"f:metadata": {"f:labels": labels, "f:ownerReferences": references}, "f:data": {"f:a": {}}}
    child = {**config_map(ownerReferences=[owner_reference(live())]), "data": {"a": stands}}
    script = Script(config_map(), children=[owned(child, fields)])

    await ApplyDescendants()(wanting(script, data={"a": True}))

    assert bool(script.requests) is applied


async def test_a_child_that_cannot_be_recreated_fails_with_the_same_text_each_time() -> None:
    """Regression: the trial's random name was in it, so each try was a new status and a new event."""

    def refused(sent_as: str) -> Invalid:
        cause = Cause("FieldValueInvalid", "spec.template", "Invalid value: {}: field is immutable")
        error = refusal(Failure(422, "Invalid", "x", None, (cause,)), verb="apply", resource=f"configmaps {sent_as}")
        assert isinstance(error, Invalid)
        return error

    class Trial(Script):
        async def apply(self, kind: Kind, resource: Resource, **options: Any) -> tuple[Resource, bool]:
            self.requests.append(("dry run" if options.get("dry_run") else "apply", resource))
            raise refused(f"default/{resource['metadata']['name']}")

    texts = set()
    for _ in range(3):
        script = Trial(children=[our_config_map()])
        with pytest.raises(Invalid) as caught:
            await ApplyDescendants()(wanting(script, recreate=True))
        assert script.requests[1][1]["metadata"]["name"].startswith("c-"), "the trial has a name of its own"
        texts.add(failure_of(caught.value).message)

    assert texts == {"cannot apply configmaps default/c (422): spec.template: Invalid: field is immutable"}


async def test_a_child_that_was_deleted_to_be_recreated_is_created_without_a_read() -> None:
    """The record of its last apply would ask for one: an object with a record most likely exists."""
    immutable = refusal(Failure(422, "Invalid", ""), verb="apply", resource="configmaps default/c")
    script = Script(immutable, config_map(), live(), None, config_map(uid="u-new"), children=[our_config_map()])
    script.applied_records[CONFIG_MAP, Key("default", "c")] = AppliedRecord(b"", "u-c", "5", b"")

    await ApplyDescendants()(wanting(script, recreate=True))

    assert [verb for verb, _ in script.requests] == ["apply", "dry run", "get", "delete", "apply"]


IMMUTABLE = "Invalid value: {}: field is immutable"


@pytest.mark.parametrize(
    ("kind", "cause", "advised"),
    [
        (Owned("v1", "ConfigMap"), IMMUTABLE, True),
        (Owned("batch/v1", "Job"), IMMUTABLE, True),
        (Owned("v1", "Pod"), "Forbidden: pod updates may not change fields other than `spec.x`", True),
        (Owned("v1", "ConfigMap"), "Invalid value: 0: must be greater than or equal to 1", False),
        (Owned("v1", "ConfigMap"), "Required value", False),
        (Owned("v1", "PersistentVolumeClaim"), IMMUTABLE, False),
        (Owned("apps/v1", "StatefulSet"), "Forbidden: updates to statefulset spec for fields other than 'a'", False),
        (Owned("example.com/v1", "Database", plural="databases", scope=Scope.NAMESPACED), IMMUTABLE, False),
    ],
)
def test_replacing_is_advised_only_for_immutable_fields_and_where_no_data_is_lost(
    kind: Owned, cause: str, advised: bool
) -> None:
    """Regression: shrinking a claim was answered by the advice to delete it, also in the event of its user."""
    failure = Failure(422, "Invalid", "x", None, (Cause("FieldValueInvalid", "spec.a", cause),))
    refused = refusal(failure, verb="apply", resource=f"{kind.resource} default/c")
    assert isinstance(refused, Invalid)
    advise(refused, kind)

    advice = "; advice: recreate=True would delete it with its data and create it again"
    assert failure_of(refused).message.endswith(advice) is advised
    assert "recreate" not in failure_of(refused, notes=(ALSO,)).message


def test_an_object_that_does_not_fit_its_schema_gets_no_advice() -> None:
    """Regression: server-side apply answers a wrong type with 500, and the advice was to delete the object."""
    text = "failed to create typed patch object (default/c; /v1, Kind=ConfigMap): .data.size: expected string, got 3"
    refused = refusal(Failure(500, "", text), verb="apply", resource="configmaps default/c")
    assert isinstance(refused, Invalid)
    advise(refused, CONFIG_MAP)
    assert "recreate" not in failure_of(refused).message


def listed(owner: str, *, items: int, phase: str) -> Resource:
    """A child with a list map, all of which `owner` applied."""
    entries = [{"name": f"item-{number}", "phase": phase} for number in range(items)]
    paths = {f'k:{{"name":"{entry["name"]}"}}': {".": {}, "f:name": {}, "f:phase": {}} for entry in entries}
    entry = {"manager": owner, "operation": "Apply", "fieldsV1": {"f:items": paths}}
    return {**config_map(managedFields=[entry]), "items": entries}


def threads_of(monkeypatch: pytest.MonkeyPatch, module: str, work: Callable[..., Any]) -> list[int]:
    """The threads in which `work` is called by that module of the steps, from now on."""
    threads: list[int] = []

    def recorded(*args: Any) -> Any:
        threads.append(threading.get_ident())
        return work(*args)

    monkeypatch.setattr(f"bonny.steps.{module}.{work.__name__}", recorded)
    return threads


@pytest.mark.parametrize(("items", "on_the_loop"), [(10, True), (2_000, False)])
async def test_what_is_ours_of_a_large_child_is_looked_up_beside_the_loop(
    items: int, on_the_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: lists of thousands of items held up the lease and the probes."""
    threads = threads_of(monkeypatch, "live", project)
    script = Script(config_map(), children=[listed(MANAGER, items=items, phase="ok")])

    await ApplyDescendants()(wanting(script))

    assert [thread == threading.get_ident() for thread in threads] == [on_the_loop]


@pytest.mark.parametrize(("items", "on_the_loop"), [(10, True), (2_000, False)])
async def test_a_fight_over_a_large_child_is_explained_beside_the_loop_and_names_each_path_once(
    items: int, on_the_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the report of a fight over 2,000 items held the loop for 3.4 s."""
    threads = threads_of(monkeypatch, "child", overridden)
    wanted = listed(MANAGER, items=items, phase="ok")
    answers = [owned(config_map(resourceVersion="6"), {"f:data": {}})] * (AT_ONCE + 1)
    script = Script(*answers, children=[listed("rival", items=items, phase="gone")])
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "items": wanted["items"]}

    for _ in answers:
        assert threads == []
        axn = token(script, live(), controller=WidgetController())
        axn.register_descendant(child)
        await ApplyDescendants()(axn)

    assert [thread == threading.get_ident() for thread in threads] == [on_the_loop]
    (message,) = [event.message for event in axn.events if event.reason == "RepeatedDrift"]
    assert "field manager 'rival' sets .items[].phase; corrections now wait" in message


class Sending(Client):
    """A client whose answers are written down by the test."""

    def __init__(self, *answers: Answer | Exception) -> None:
        super().__init__(None, user_agent="test/1.0")  # type: ignore[arg-type]
        self._answers = list(answers)

    async def exchange(self, *_: Any, **__: Any) -> Answer:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("going", [False, True])
async def test_what_is_under_deletion_is_not_what_a_creation_sent_again_has_made(
    going: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bonny.client.api.CREATE_SECONDS", 0.0)
    sent = config_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"}])
    found = {**sent, "metadata": {**sent["metadata"], **({"deletionTimestamp": "now"} if going else {})}}
    exists = Answer(409, {}, msgspec.json.encode({"reason": "AlreadyExists"}))
    async with Sending(Unreachable("cut"), exists, Answer(200, {}, msgspec.json.encode(found))) as client:
        if going:
            with pytest.raises(Conflict):
                await client.create(CONFIG_MAP, sent)
        else:
            assert await client.create(CONFIG_MAP, sent) == found


# --- deletions --------------------------------------------------------------------------------------------------------


async def test_a_child_is_pruned_only_in_the_version_in_which_nobody_wanted_it() -> None:
    child = owned(config_map(), {"f:data": {}})
    script = Script(live(), None, children=[child])
    axn = token(script, live(), controller=WidgetController())
    axn.applied = set()

    await PruneDescendants()(axn)

    assert script.requests[-1] == (
        "delete",
        ("ConfigMap", Key("default", "c"), {"uid": "u-c", "version": "5"}),
    )


async def test_a_child_that_changed_before_it_was_pruned_stays() -> None:
    script = Script(live(), conflict(), children=[owned(config_map(), {"f:data": {}})])
    axn = token(script, live(), controller=WidgetController())
    axn.applied = set()

    await PruneDescendants()(axn)

    assert [verb for verb, _ in script.requests] == ["get", "delete"]


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/op"]}


def deletions(script: Script) -> list[dict[str, str]]:
    return [sent[2] for verb, sent in script.requests if verb == "delete"]


async def finalize(script: Script) -> None:
    axn = token(script, live(**ENDING), controller=Finalizing(), action=Action.FINALIZE)
    await Finalizer()(axn)


async def test_finalizing_deletes_a_child_only_as_it_was_seen() -> None:
    script = Script(live(**ENDING), None, live(finalizers=[]), children=[our_config_map()])

    await finalize(script)

    assert deletions(script) == [{"uid": "u-c", "version": "5"}]
    assert [verb for verb, _ in script.requests] == ["get", "delete", "patch"]


async def test_finalizing_leaves_a_child_that_another_owner_has_adopted_meanwhile() -> None:
    """Regression: the deletion named the UID alone, which an adoption does not change."""
    adopted = our_config_map(labels={"bonny.dev/owner-uid": "u-2"}, resourceVersion="6")
    script = Script(live(**ENDING), conflict(), adopted, live(finalizers=[]), children=[our_config_map()])

    await finalize(script)

    assert deletions(script) == [{"uid": "u-c", "version": "5"}]
    assert [verb for verb, _ in script.requests] == ["get", "delete", "get", "patch"]


async def test_finalizing_deletes_a_child_that_was_changed_meanwhile_and_still_is_ours() -> None:
    changed = our_config_map(resourceVersion="6")
    script = Script(live(**ENDING), conflict(), changed, None, live(finalizers=[]), children=[our_config_map()])

    await finalize(script)

    assert [made["version"] for made in deletions(script)] == ["5", "6"]


async def test_a_child_that_somebody_writes_all_the_time_keeps_its_owner() -> None:
    changed = our_config_map(resourceVersion="6")
    answers = [live(**ENDING), conflict(), changed, conflict(), changed, conflict()]
    script = Script(*answers, children=[our_config_map()])

    with pytest.raises(Conflict):
        await finalize(script)

    assert script.requests[-1][0] == "delete", "the finalizer stays"


async def test_finalizing_leaves_a_child_that_was_made_anew_by_another_client() -> None:
    copied = config_map(uid="u-copy", resourceVersion="6")
    script = Script(live(**ENDING), conflict(), copied, live(finalizers=[]), children=[our_config_map()])

    await finalize(script)

    assert [verb for verb, _ in script.requests] == ["get", "delete", "get", "patch"]


async def test_the_finalizer_that_is_removed_is_that_of_the_real_list() -> None:
    """Regression: it was looked up in what the implementation had made of the list."""
    script = Script(live(**ENDING), live(finalizers=[]))

    await finalize(script)

    assert script.requests[-1] == (
        "patch",
        [
            {"op": "test", "path": "/metadata/uid", "value": "u-1"},
            {"op": "test", "path": "/metadata/finalizers", "value": ["example.com/op"]},
            {"op": "add", "path": "/metadata/finalizers", "value": []},
        ],
    )


async def test_no_finalizer_is_added_to_what_is_under_deletion_after_a_conflict() -> None:
    script = Script(conflict(), live(version="8", deletionTimestamp="2026-01-01T00:00:00Z"), live(version="9"))
    axn = token(script, live(), controller=Finalizing())

    await Finalizer()(axn)

    assert ([verb for verb, _ in script.requests], axn.halted) == (["patch", "get"], True)


@pytest.mark.parametrize(
    ("action", "stored", "said"),
    [
        (Action.RECONCILE, {}, "was added, but an admission webhook or policy of the cluster removes it"),
        (Action.FINALIZE, ENDING, "was removed, but an admission webhook or policy of the cluster adds it again"),
    ],
)
async def test_a_finalizer_that_admission_undoes_is_reported_and_no_handler_runs(
    action: Action, stored: dict[str, Any], said: str
) -> None:
    """Regression: the patch was answered 200, so the finalizer counted as set; `finalize` never ran."""
    ending = action is Action.FINALIZE
    script = Script(*([live(**stored)] if ending else []), live(version="8", **stored))
    axn = token(script, live(**stored), controller=Finalizing(), action=action)

    with pytest.raises(Retry, match=f"the finalizer example.com/op {said}"):
        await Finalizer()(axn)

    assert script.requests[-1][0] == "patch"


# --- nothing to do ----------------------------------------------------------------------------------------------------


async def test_after_the_steps_it_is_too_late_to_register_also_if_they_had_nothing_to_send() -> None:
    script = Script()
    axn = token(script, live())
    axn._version = None  # no condition of the runtime's own

    await run_step(axn, ApplyDescendants())
    await run_step(axn, ApplyStatus())

    assert (script.requests, axn.applied) == ([], set())
    with pytest.raises(AlreadyApplied, match="descendants"):
        axn.register_descendant(config_map())
    with pytest.raises(AlreadyApplied, match="status"):
        axn.update_status(lambda status: status)


async def test_a_handler_that_waits_before_it_registers_anything_has_not_applied_all() -> None:
    axn = token(Script(), live(), controller=WidgetController())
    axn.wait("the database is starting")

    await run_step(axn, ApplyDescendants())

    assert axn.applied is None
