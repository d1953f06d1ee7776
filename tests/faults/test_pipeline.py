"""Rows I, S, A, P and E of the pipeline: finalizers, pruning, recreating, status (docs/reliability.md)."""

from __future__ import annotations

import pytest

from bonny.api.crd import crds
from bonny.sandbox import Sandbox
from bonny.testing.faults import CommitThenDrop, Drop, Fault, Hold
from tests.faults.scene import SEEN_SECONDS, SLOW, Scene, watch_of_config_maps
from tests.faults.story import NAME, Chapter, Story, events_of_things, histories, newest_version
from tests.support.processes import pipelined
from tests.support.things import GROUP, Thing, config_map, path_of, spec, thing

APPLY = "application/apply-patch+yaml"

# What a story without a fault writes: a finalizer, three children, a Deployment and a status; two children, a refused
# change, its trial, its deletion, the new one, the dropped child and a status; the far child and the finalizer.
WRITES = 6 + 8 + 2


@pytest.fixture(autouse=True, scope="module")
def _things(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


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
    # The children that only it can remove go first.
    removal = story.strike(1, Drop(), last=True)
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


def test_s2_a_child_that_somebody_re_created_behind_a_lagging_stream_is_not_pruned(pipeline: Scene) -> None:
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
