"""Typed status: `axn.update_status(WidgetStatus(...))`, and what a status that does not fit does."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import ValidationError

from bonny import Axn, Controller, Resource
from bonny.api import Field, ListMap, Model, Spec, Status, Version, WithConditions, WithObservedGeneration
from bonny.errors import InvalidObject, OptionError
from bonny_dev import testing
from tests.support.tokens import token_of


class Phase(StrEnum):
    """How far it is."""

    RUNNING = "Running"


class Replica(Model):
    """One replica."""

    name: str
    node_name: str | None = None
    restarts: int = 0


class ClaimStatus(Status, WithConditions, WithObservedGeneration):
    """The observed state."""

    phase: Phase | None = None
    pvc_name: str | None = None
    cluster_ip: Annotated[str | None, Field(alias="clusterIP")] = None
    ready: int = 0
    last_seen: datetime | None = None
    note: str | None = "none"
    replicas: Annotated[list[Replica], ListMap("name")] = Field(default_factory=list)


class ClaimSpec(Spec):
    """The desired state."""

    size: int = 1


class Claim(Version):
    """A claim."""

    kind = "Claim"
    version = "v1"
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus


class Bare(Version):
    """A kind without a status."""

    kind = "Bare"
    version = "v1"
    spec: ClaimSpec = ClaimSpec()


class OtherStatus(Status):
    """The status of another kind."""

    phase: str | None = None


LONG_AGO = "2026-01-01T00:00:00Z"


def claim(**fields: Any) -> Resource:
    return {"apiVersion": "example.com/v1", "kind": "Claim", "metadata": {"name": "c1"}, **fields}


@pytest.fixture
def axn() -> Axn[Claim]:
    return testing.axn(claim(), version=Claim)


def test_fields_have_their_names_and_forms_on_the_wire(axn: Axn[Claim]) -> None:
    seen = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    axn.update_status(ClaimStatus(phase=Phase.RUNNING, pvc_name="a", cluster_ip="10.0.0.1", last_seen=seen))
    wanted = {"phase": "Running", "pvcName": "a", "clusterIP": "10.0.0.1", "lastSeen": "2026-01-02T03:04:05Z"}
    assert axn.status == wanted
    assert Claim.status_of({"status": axn.status}) == ClaimStatus.model_validate(wanted, strict=False)


def test_only_given_fields_change(axn: Axn[Claim]) -> None:
    before = {"phase": "Running", "pvcName": "a", "ready": 2, "of": "another version"}
    axn.update_status(ClaimStatus(pvc_name="b"))
    assert axn.status_from(before) == {**before, "pvcName": "b"}
    assert axn.status == {"pvcName": "b"}, "defaults are not written"


def test_a_field_that_is_given_none_is_removed(axn: Axn[Claim]) -> None:
    axn.update_status(ClaimStatus(phase=None, pvc_name=None, ready=1))
    assert axn.status_from({"phase": "Running", "pvcName": "a"}) == {"ready": 1}


def test_where_null_is_a_value_it_is_written(axn: Axn[Claim]) -> None:
    axn.update_status(ClaimStatus(note=None))
    assert axn.status == {"note": None}


def test_a_list_is_replaced_and_nulls_in_it_are_left_out(axn: Axn[Claim]) -> None:
    axn.update_status(ClaimStatus(replicas=[Replica(name="a", node_name=None), Replica(name="b", node_name="n")]))
    replicas = axn.status_from({"replicas": [{"name": "c"}]})["replicas"]
    assert replicas == [{"name": "a", "restarts": 0}, {"name": "b", "nodeName": "n", "restarts": 0}]


def test_conditions_and_observed_generation_stay(axn: Axn[Claim]) -> None:
    """What was read may be changed and written back, without undoing a condition that was set before."""
    axn.set_condition("Ready", True)
    old = {
        "type": "Ready",
        "status": "False",
        "reason": "NotReady",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = Claim.status_of({"status": {"conditions": [old], "observedGeneration": 3, "ready": 1}})
    assert isinstance(status, ClaimStatus)
    status.ready += 1
    axn.update_status(status)
    assert axn.conditions["Ready"]["status"] == "True"
    assert axn.status.keys() == {"conditions", "ready"}
    assert axn.status["ready"] == 2


def test_a_later_change_of_the_object_changes_nothing(axn: Axn[Claim]) -> None:
    status = ClaimStatus(ready=1)
    axn.update_status(status)
    status.ready = 2
    assert axn.status == {"ready": 1}


def test_a_function_after_it_sees_what_it_set(axn: Axn[Claim]) -> None:
    axn.update_status(ClaimStatus(ready=1))
    axn.update_status(lambda status: {**status, "ready": status["ready"] + 1})
    assert axn.status == {"ready": 2}


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_a_field_that_was_set_to_another_type_is_refused_in_production_too() -> None:
    status = ClaimStatus(ready=1)
    status.ready = "many"  # type: ignore[assignment]
    with pytest.raises(InvalidObject, match=r"^status.ready: Input should be a valid integer$"):
        token_of(claim(), version=Claim).update_status(status)


def test_a_time_without_a_zone_is_refused_in_a_test(axn: Axn[Claim]) -> None:
    with pytest.raises(InvalidObject, match=r"^status.lastSeen: must be of format date-time$"):
        axn.update_status(ClaimStatus(last_seen=datetime(2026, 1, 2)))  # noqa: DTZ001


def test_items_with_the_same_key_are_refused_in_a_test(axn: Axn[Claim]) -> None:
    status = ClaimStatus(replicas=[Replica(name="a"), Replica(name="a")])
    with pytest.raises(InvalidObject, match=r"^status.replicas\[1\]: is a duplicate$"):
        axn.update_status(status)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (Claim, "update_status got a OtherStatus, and a Claim has a ClaimStatus"),
        (Bare, "update_status got a OtherStatus, and a Claim has no status"),
    ],
)
def test_the_status_of_another_kind_is_refused(version: type[Version], sentence: str) -> None:
    with pytest.raises(OptionError, match=f"^{sentence}$"):
        token_of(claim(), version=version).update_status(OtherStatus())


def test_regression_a_mapping_is_refused_in_the_line_that_registers_it() -> None:
    with pytest.raises(OptionError, match=r"^update_status got a dict: pass a status object or a function$"):
        token_of(claim(), version=Claim).update_status({"phase": "Running"})  # type: ignore[arg-type]


def test_a_kind_without_a_version_class_takes_any_status() -> None:
    axn = token_of(claim(), version=None)
    axn.update_status(OtherStatus(phase="Running"))
    assert axn.status == {"phase": "Running"}


def test_a_misspelt_field_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidObject, match=r"^ClaimStatus.pvc_nam: unknown field: did you mean pvc_name\?$"):
        ClaimStatus(pvc_nam="a")  # type: ignore[call-arg]


def test_reading_still_ignores_fields_of_other_versions() -> None:
    stored = {"ready": 1, "ofAnotherVersion": True}
    read = Claim.status_of({"status": stored})
    assert read == ClaimStatus(ready=1)
    assert copy.deepcopy(read) == pickle.loads(pickle.dumps(read)) == read


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ({"pvc_name": "x"}, r"status.pvc_name: unknown field: did you mean pvcName\?"),
        ({"phase": None}, "status.phase: must not be null"),
        ({"ready": "3"}, "status.ready: must be of type integer"),
        ({"phase": None, "nonsense": 3}, "status.phase: must not be null; status.nonsense: unknown field"),
        ({"conditions": [{"type": "Ready", "status": True}]}, r"status.conditions\[0\].status: must be"),
    ],
)
async def test_a_function_whose_status_does_not_fit_fails_the_test_in_the_handlers_line(
    status: Resource, sentence: str
) -> None:
    passed = []

    class Claims(Controller[Claim]):
        async def reconcile(self, axn: Axn[Claim]) -> None:
            axn.update_status(lambda _: status)
            passed.append(axn)

    with pytest.raises(InvalidObject, match=sentence):
        await testing.handle(Claims, claim())
    assert passed == []


async def test_a_function_is_checked_on_the_status_of_the_object() -> None:
    class Counts(Controller[Claim]):
        async def reconcile(self, axn: Axn[Claim]) -> None:
            axn.update_status(lambda status: {**status, "ready": status["ready"] + 1})

    axn = await testing.handle(Counts, claim(status={"ready": 1}))
    assert axn.status_from({"ready": 1}) == {"ready": 2}


def test_an_error_in_a_status_does_not_quote_it() -> None:
    """Regression: pydantic quotes the value, and the error of a handler is logged as it is."""
    for wrong in ({"ready": "hunter2"}, {"replicas": [{"name": "a", "restarts": "hunter2"}]}):
        with pytest.raises(ValidationError) as caught:
            ClaimStatus(**wrong)
        assert "Input should be a valid integer" in str(caught.value)
        assert "hunter2" not in str(caught.value)
