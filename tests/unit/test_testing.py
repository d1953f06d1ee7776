"""`bonny_dev.testing.axn` and `handle`: a token for a test without a server, and its way through a handler."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from bonny import Axn, Controller, Kind, Owned, Related, Resource, Retry, compat
from bonny.api import Model
from bonny.calling import HandlerTimeout
from bonny.errors import InvalidObject, OptionError, UndeclaredKind
from bonny.kinds import builtin_kinds
from bonny.resource import owner_reference
from bonny_dev import testing
from bonny_dev.testing.stubs import check_fields
from tests.support.widget import Widget, WidgetSpec, widget


def pod(**labels: str) -> Resource:
    metadata = {"name": "p1", "namespace": "default", "uid": "u-2", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


class Noting(compat.Controller[Widget]):
    """Notes what was called, and where."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()

    async def reconcile(self, axn: compat.Axn[Widget]) -> None:
        axn.assigns["called"] = ("reconcile", axn.spec.size)

    def modify(self, axn: compat.Axn[Widget]) -> None:
        axn.assigns["called"] = ("modify", axn.spec.size)
        axn.assigns["elsewhere"] = threading.current_thread() is not self.thread

    async def delete(self, axn: compat.Axn[Widget]) -> None:
        axn.assigns["called"] = ("delete", axn.spec.size)

    async def finalize(self, axn: compat.Axn[Widget]) -> None:
        axn.assigns["called"] = ("finalize", axn.spec.size)


# --- handle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "called"),
    [
        ("add", "reconcile"),
        ("modify", "modify"),
        ("reconcile", "reconcile"),
        ("delete", "delete"),
        ("finalize", "finalize"),
    ],
)
async def test_the_handler_that_fits_the_action_is_called(action: str, called: str) -> None:
    token = await testing.handle(Noting, widget(size=3), action=action)
    assert token.assigns["called"] == (called, 3)


async def test_a_def_handler_runs_in_a_thread() -> None:
    assert (await testing.handle(Noting, widget(), action="modify")).assigns["elsewhere"]


@pytest.mark.parametrize("action", ["modify", "delete", "finalize"])
async def test_without_a_handler_nothing_is_called(action: str) -> None:
    """Regression: `finalize` of a controller that has none ended in a NotImplementedError."""

    class OnlyAdd(compat.Controller[Widget]):
        async def add(self, axn: compat.Axn[Widget]) -> None:
            axn.assigns["called"] = True

    assert (await testing.handle(OnlyAdd, widget(), action=action)).assigns == {}
    assert (await testing.handle(OnlyAdd, widget())).assigns == {"called": True}


async def test_the_handler_sees_what_the_test_says() -> None:
    class Asks(compat.Controller[Widget]):
        owns = (Owned("v1", "Pod"),)
        options: ClassVar[dict[str, str]] = {"greeting": "hello"}

        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            live = axn.observed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}})
            axn.assigns.update(seen=live, tries=axn.tries, reasons=axn.reasons, **axn.options)

    token = await testing.handle(Asks, widget(), observed=[pod(app="web")], reasons=["child"], tries=2)
    assert token.assigns == {"seen": pod(app="web"), "tries": 2, "reasons": {"child"}, "greeting": "hello"}


async def test_own_steps_run_before_the_handler_and_may_halt() -> None:
    def small_ones_are_left_alone(axn: Axn[Any]) -> None:
        if axn.spec.size < 10:
            axn.halt()

    class Stepping(Noting):
        steps = (small_ones_are_left_alone,)

    assert (await testing.handle(Stepping, widget(size=3))).assigns == {}
    assert (await testing.handle(Stepping, widget(size=30))).assigns["called"] == ("reconcile", 30)


def registering(*children: Resource, **attributes: Any) -> type[Controller[Any]]:
    """A controller that registers these, and owns ConfigMaps and Deployments."""

    class Registers(Controller[Widget]):
        owns = (
            Owned("v1", "ConfigMap"),
            Owned("apps/v1", "Deployment"),
            Owned("networking.k8s.io/v1", "NetworkPolicy"),
        )

        async def reconcile(self, axn: Axn[Widget]) -> None:
            for each in children:
                axn.register_descendant(each)

    return Registers.configured(**attributes)


def child(api_version: str, kind: str, **fields: Any) -> Resource:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w1"}, **fields}


async def test_a_child_of_a_kind_that_is_not_owned_is_refused_as_in_a_running_operator() -> None:
    """Regression: the handler test passed, and the running operator refused each object."""
    with pytest.raises(UndeclaredKind, match=r'does not own that kind: add Owned\("v1", "ConfigMap"\) to its `owns`'):
        await testing.handle(registering(child("v1", "ConfigMap"), owns=()), widget())


async def test_an_object_of_a_kind_that_is_not_declared_cannot_be_observed() -> None:
    class Looks(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.observed(child("v1", "Secret"))

    advice = r"add Owned\('v1', 'Secret'\) to the controller's `owns`"
    with pytest.raises(OptionError, match=f"^Secret default/w1 cannot be observed: {advice}"):
        await testing.handle(Looks, widget(), observed=[child("v1", "Secret")])
    related = Looks.configured(related=(Related("v1", "Secret", named_by=lambda _: ()),))
    await testing.handle(related, widget())


CONTAINER = {"name": "c", "image": "i", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (child("v1", "ConfigMap", imutable=True), "imutable: unknown field: did you mean immutable?"),
        (child("v1", "ConfigMap", data={"size": 3}), "data.size: must be of type string"),
        (
            {**child("v1", "ConfigMap"), "metadata": {"name": "w1", "lables": {}}},
            "metadata.lables: unknown field: did you mean labels?",
        ),
        (child("apps/v1", "Deployment", spec={"replicas": "3"}), "spec.replicas: must be of type integer"),
        (
            child("apps/v1", "Deployment", spec={"template": {"spec": {"containers": [{**CONTAINER, "imgae": ""}]}}}),
            "spec.template.spec.containers[0].imgae: unknown field: did you mean image?",
        ),
        (
            child("networking.k8s.io/v1", "NetworkPolicy", spec={"ingress": [{"from": [{"podSelektor": {}}]}]}),
            "spec.ingress[0].from[0].podSelektor: unknown field: did you mean podSelector?",
        ),
        (child("apps/v1", "Deployment", spec={"template": {"spec": {"containers": [CONTAINER]}}}), ""),
        (child("v1", "ConfigMap", data={"size": None}, immutable=None), ""),
        (
            child("apps/v1", "Deployment", spec={"template": {"spec": {"restartPolice": "Never"}}}),
            "spec.template.spec.restartPolice: unknown field: did you mean restartPolicy?",
        ),
    ],
)
async def test_a_field_of_a_child_that_the_api_server_would_refuse_is_refused(resource: Resource, said: str) -> None:
    if not said:
        await testing.handle(registering(resource), widget())
        return
    with pytest.raises(InvalidObject) as raised:
        await testing.handle(registering(resource), widget())
    assert str(raised.value) == f"{resource['kind']} w1: {said}"


@pytest.mark.parametrize("kind", builtin_kinds())
def test_the_fields_of_every_built_in_kind_are_known(kind: tuple[str, str]) -> None:
    api_version, name = kind
    check_fields(child(api_version, name))
    with pytest.raises(InvalidObject, match="unknown field"):
        check_fields(child(api_version, name, nothing="at all"))


async def test_a_controller_without_a_handler_is_refused() -> None:
    class Nothing(Controller[Widget]):
        def helper(self) -> None: ...

    with pytest.raises(OptionError, match="Nothing has no handler: define reconcile"):
        await testing.handle(Nothing, widget())


@pytest.mark.parametrize(
    ("name", "meant"), [("reconcil", "reconcile"), ("finalise", "finalize"), ("modfy", "modify"), ("_reconcile", "")]
)
async def test_a_misspelt_handler_is_refused(name: str, meant: str) -> None:
    misspelt = type("Misspelt", (Noting,), {name: Noting.finalize, "reconcile_all": Noting.finalize, "adds": ()})
    if not meant:
        await testing.handle(misspelt, widget())
        return
    with pytest.raises(OptionError, match=rf"Misspelt\.{name} is never called: did you mean {meant}\?"):
        await testing.handle(misspelt, widget())


async def test_what_a_handler_raises_comes_out() -> None:
    class Waits(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            raise Retry("not yet", after=5.0)

    with pytest.raises(Retry, match="not yet") as raised:
        await testing.handle(Waits, widget())
    assert raised.value.after == 5.0


async def test_a_handler_that_takes_too_long_is_ended() -> None:
    class Slow(Controller[Widget]):
        timeout = 0.01

        async def reconcile(self, axn: Axn[Widget]) -> None:
            await asyncio.Event().wait()

    with pytest.raises(HandlerTimeout):
        await testing.handle(Slow, widget())


async def test_an_object_that_does_not_fit_reaches_no_handler() -> None:
    class Labels(Model):
        team: str

    class Metadata(Model):
        labels: Labels

    class OfATeam(Model):
        metadata: Metadata

    class Pods(compat.Controller[Any]):
        resource = Kind("v1", "Pod")
        schema = OfATeam

        async def reconcile(self, axn: compat.Axn[Any]) -> None:
            axn.assigns["called"] = True

    with pytest.raises(InvalidObject, match=r"spec\.size"):
        await testing.handle(Noting, widget(size=4711))
    with pytest.raises(InvalidObject, match=r"metadata\.labels\.team"):
        await testing.handle(Pods, pod(app="web"))
    assert (await testing.handle(Pods, pod(team="blue"))).assigns == {"called": True}


async def test_an_object_with_null_is_read_by_a_model_without_a_structural_schema() -> None:
    """Regression: an object with null somewhere could not be read: `dict[str, Any]` has no structural schema."""

    class Pod(BaseModel):
        metadata: dict[str, Any]
        spec: dict[str, Any] | list[Any]

    class Pods(compat.Controller[Any]):
        resource = Kind("v1", "Pod")
        schema = Pod

        async def reconcile(self, axn: compat.Axn[Any]) -> None:
            axn.assigns["called"] = True

    valid = {**pod(), "spec": {"nodeName": None}}
    assert (await testing.handle(Pods, valid)).assigns == {"called": True}
    with pytest.raises(InvalidObject, match=r"object\.spec\.\S+: Input should be a valid"):
        await testing.handle(Pods, {**valid, "spec": 3})


async def test_of_several_kinds_the_version_of_the_object_is_taken() -> None:
    """Regression: a controller of a version and another kind got a plain mapping, and no conditions, for both."""

    class Both(compat.Controller[Any]):
        resource = (Kind("v1", "Pod"), Widget)

        async def reconcile(self, axn: compat.Axn[Any]) -> None:
            axn.assigns.update(conditions=axn.has_conditions, spec=axn.spec)

    assert (await testing.handle(Both, widget(size=3))).assigns == {"conditions": True, "spec": WidgetSpec(size=3)}
    assert (await testing.handle(Both, pod())).assigns == {"conditions": False, "spec": {}}


async def test_a_request_of_its_own_says_what_it_needs() -> None:
    class Reads(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            await axn.client.get(Kind("v1", "Namespace"), "default")

    with pytest.raises(AssertionError, match=r'^no answer to "get namespaces default" is given: write answers='):
        await testing.handle(Reads, widget())


async def test_success_is_told_although_nothing_was_written() -> None:
    class Tells(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.success_event(reason="Done")

    token = await testing.handle(Tells, widget())
    testing.assert_event(token, "Done", type="Normal")
    for emit in token.emissions():
        emit()
    assert [event.reason for event in token.emitted] == ["Done"]


# --- axn --------------------------------------------------------------------------------------------------------------


def test_a_token_is_validated_when_it_is_made() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.size"):
        testing.axn(widget(size=0), version=Widget)


def test_observed_objects_are_found_with_and_without_the_owners_namespace() -> None:
    token = testing.axn(widget(), version=Widget, observed=[pod(app="web")])
    there = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}}
    elsewhere = {**there, "metadata": {"name": "p1", "namespace": "elsewhere"}}
    assert token.observed(there) == pod(app="web")
    assert token.observed(elsewhere) is None


# --- children and related objects -------------------------------------------------------------------------------------


class Lists(compat.Controller[Widget]):
    """Keeps the newest two of its ConfigMaps, and registers one more."""

    owns = (Owned("v1", "ConfigMap"), Owned("v1", "Namespace"))
    related = (
        Related("v1", "Pod", keys=lambda _: [], indexes={"node": lambda pod: [pod["spec"].get("nodeName", "")]}),
    )

    async def reconcile(self, axn: compat.Axn[Widget]) -> None:
        found = axn.children("v1", "ConfigMap")
        for child in found[-2:]:
            axn.keep_descendant(child)
        axn.register_descendant(config_map("registered"))
        pods = axn.related("v1", "Pod", index=("node", "n1")) if found else ()
        axn.assigns["pods"] = [each["metadata"]["name"] for each in pods]


def config_map(name: str, **metadata: Any) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


async def test_children_are_found_by_the_label_or_by_an_owner_reference() -> None:
    observed = [
        testing.child_of(widget(), config_map("d")),
        config_map("c", labels={"bonny.dev/owner-uid": "u-1"}),
        config_map("b", ownerReferences=[{"kind": "Other", "name": "o", "uid": "u-9"}, owner_reference(widget())]),
        testing.child_of(widget(), config_map("registered")),
        config_map("other", ownerReferences=[{"kind": "Other", "name": "o", "uid": "u-9"}]),
        testing.child_of(widget(), config_map("a")),
        pod() | {"spec": {"nodeName": "n1"}},
    ]

    token = await testing.handle(Lists, widget(), observed=observed)

    testing.assert_pruned(token, "ConfigMap", "a", "b", "c")
    testing.assert_pruned(token, "Namespace")
    assert token.assigns["pods"] == ["p1"]
    with pytest.raises(AssertionError, match=r"^ConfigMap to be pruned: a, b, c, not none$"):
        testing.assert_pruned(token, "ConfigMap")


async def test_nothing_is_pruned_where_a_handler_of_its_own_would_prune_the_children_of_others() -> None:
    class Adds(Lists):
        async def add(self, axn: Axn[Widget]) -> None: ...

    token = await testing.handle(Adds, widget(), observed=[testing.child_of(widget(), config_map("a"))])
    testing.assert_pruned(token, "ConfigMap")


async def test_an_observed_object_without_an_owner_says_how_to_make_it_a_child() -> None:
    before = await testing.handle(Lists, widget())
    with pytest.raises(OptionError, match=r"^ConfigMap registered in `observed` names no owner.*testing\.child_of\("):
        await testing.handle(Lists, widget(), observed=before.descendants)


async def test_a_kind_that_is_not_declared_is_refused_as_by_the_operator() -> None:
    class Undeclared(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.children("batch/v1", "Job")

    with pytest.raises(OptionError, match=r"Job .* cannot be a child"):
        await testing.handle(Undeclared, widget())


def test_a_token_without_a_controller_owns_what_is_observed() -> None:
    token = testing.axn(widget(), version=Widget, observed=[testing.child_of(widget(), config_map("a"))])
    assert len(token.children("v1", "ConfigMap")) == len(token.related("v1", "ConfigMap")) == 1


@pytest.mark.parametrize(("field", "value"), [("action", "create"), ("reasons", ["because"])])
def test_an_action_or_a_reason_that_does_not_exist_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        testing.axn(widget(), **{field: value})
