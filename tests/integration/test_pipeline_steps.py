"""The steps of the pipeline on a real API server: finalizing, pruning, recreating, related kinds, hooks, status."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from bonny import Axn, Controller, Kind, Owned, Related, Resource, Retry, compat
from bonny.steps import ApplyStatus, DelegateToController, Finalizer
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Hold, ProxiedRequest
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    PartsController,
    Thing,
    ThingStatus,
    condition_of,
    config_map,
    names,
    operator_of,
    path_of,
    spec,
    thing,
    until_reconciled,
)


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


# --- finalizers -------------------------------------------------------------------------------------------------------


class Bucketed(PartsController):
    """Something outside of Kubernetes belongs to each object."""

    finalized: ClassVar[list[str]] = []
    seen: ClassVar[list[tuple[str, ...]]] = []
    blocked = False

    async def reconcile(self, axn: Axn[Thing]) -> None:
        type(self).seen.append(tuple(axn.resource["metadata"].get("finalizers", ())))
        await super().reconcile(axn)

    async def finalize(self, axn: Axn[Thing]) -> None:
        if type(self).blocked:
            axn.update_status(lambda status: {**status, "phase": "Emptying"})
            raise Retry("the bucket is not empty", after=0.2)
        type(self).finalized.append(axn.resource["metadata"]["name"])


@pytest.fixture(autouse=True)
def _forget() -> None:
    Bucketed.finalized, Bucketed.seen, Bucketed.blocked = [], [], False


def test_the_finalizer_is_there_before_the_handler_runs_and_goes_after_finalize(
    sandbox: Sandbox, namespace: str
) -> None:
    operator = operator_of(Bucketed)
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a"]))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        live = sandbox.get(*THING, "t1", namespace=namespace)
        assert live is not None
        assert live["metadata"]["finalizers"] == [f"{operator.name}.example.com/bucketed"]
        assert Bucketed.seen[0] == (f"{operator.name}.example.com/bucketed",)

        sandbox.delete(*THING, "t1", namespace=namespace)
        sandbox.eventually(lambda: sandbox.get(*THING, "t1", namespace=namespace) is None)
        assert Bucketed.finalized == ["t1"]


def test_a_finalize_that_asks_for_another_try_reports_and_keeps_the_object(sandbox: Sandbox, namespace: str) -> None:
    Bucketed.blocked = True
    with serving(operator_of(Bucketed), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        sandbox.delete(*THING, "t1", namespace=namespace)
        sandbox.eventually(lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("False", "Retry"))
        live = sandbox.get(*THING, "t1", namespace=namespace)
        assert live is not None
        assert live["status"]["phase"] == "Emptying"

        Bucketed.blocked = False
        sandbox.eventually(lambda: sandbox.get(*THING, "t1", namespace=namespace) is None)


def is_finalizer_patch(request: ProxiedRequest) -> bool:
    return (
        request.method == "PATCH"
        and "/things/" in request.path
        and not request.path.endswith("/status")
        and ("fieldManager" not in request.query)
    )


def test_two_writers_of_the_finalizer_list_lose_nothing(sandbox: Sandbox, namespace: str, proxy: FaultProxy) -> None:
    """Somebody else's finalizer comes between our decision and our patch."""
    hold = Hold(threading.Event())
    proxy.add(Fault(hold, on=is_finalizer_patch))
    operator = operator_of(Bucketed)
    own = f"{operator.name}.example.com/bucketed"
    with serving(operator, proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(lambda: proxy.count(is_finalizer_patch) == 1)
        path = path_of("t1", namespace)
        sandbox.request("PATCH", path, {"metadata": {"finalizers": ["example.com/theirs"]}}, content_type=MERGE)
        hold.until.set()
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )

        live = sandbox.get(*THING, "t1", namespace=namespace)
        assert live is not None
        assert sorted(live["metadata"]["finalizers"]) == ["example.com/theirs", own]

        sandbox.delete(*THING, "t1", namespace=namespace)
        sandbox.eventually(
            lambda: (
                (sandbox.get(*THING, "t1", namespace=namespace) or {})["metadata"]["finalizers"]
                == ["example.com/theirs"]
            )
        )
    assert Bucketed.finalized == ["t1"]


def test_the_finalizer_of_a_re_created_object_is_not_removed(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """The removal is on its way while a person forces the object away and creates it anew."""
    operator = operator_of(Bucketed)
    with serving(operator, proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        hold = Hold(threading.Event())
        proxy.add(Fault(hold, on=is_finalizer_patch))
        before = proxy.count(is_finalizer_patch)
        sandbox.delete(*THING, "t1", namespace=namespace)
        sandbox.eventually(lambda: proxy.count(is_finalizer_patch) == before + 1)
        path = path_of("t1", namespace)
        sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        own = [f"{operator.name}.example.com/bucketed"]
        anew = thing("t1", namespace=namespace)
        anew["metadata"]["finalizers"] = own
        (made,) = sandbox.apply(anew)
        hold.until.set()
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )

        live = sandbox.get(*THING, "t1", namespace=namespace)
        assert live is not None
        assert (live["metadata"]["uid"], live["metadata"]["finalizers"]) == (made["metadata"]["uid"], own)


def test_several_finalizers_each_with_a_predicate_and_an_implementation(sandbox: Sandbox, namespace: str) -> None:
    ran: list[str] = []

    def noting(word: str) -> Any:
        def implementation(axn: Axn[Any]) -> None:
            ran.append(word)

        return implementation

    class Plain(PartsController):
        """Has no finalize of its own."""

    steps = (
        Finalizer("example.com/large", implementation=noting("large"), when=lambda axn: axn.spec.size > 50),
        Finalizer("example.com/all", implementation=noting("all")),
        DelegateToController(),
        ApplyStatus(),
    )
    with serving(operator_of(Plain, steps=steps), sandbox.kubeconfig):
        for name, size in (("small", 1), ("large", 60)):
            sandbox.apply(thing(name, namespace=namespace, size=size))
            sandbox.eventually(
                lambda name=name: condition_of(sandbox.get(*THING, name, namespace=namespace)) == ("True", "Succeeded")
            )
        found = {
            found["metadata"]["name"]: found["metadata"]["finalizers"]
            for found in sandbox.items(*THING, namespace=namespace)
        }
        assert found == {"small": ["example.com/all"], "large": ["example.com/large", "example.com/all"]}
        for name in found:
            sandbox.delete(*THING, name, namespace=namespace)
            sandbox.eventually(lambda name=name: sandbox.get(*THING, name, namespace=namespace) is None)
    assert ran == ["large", "all", "all"]


# --- children without an owner reference ------------------------------------------------------------------------------


class Scattered(Controller[Thing]):
    """Children where no owner reference can lead: in another namespace, and in none."""

    owns = (Owned("v1", "ConfigMap"), Owned("v1", "PersistentVolume"))

    async def reconcile(self, axn: Axn[Thing]) -> None:
        name = axn.resource["metadata"]["name"]
        axn.register_descendant(config_map(f"{name}-far", namespace="default"))
        axn.register_descendant(config_map(f"{name}-near"))
        axn.register_descendant(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{name}-volume"},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/none"},
                },
            }
        )


class Collecting(Scattered):
    """The same, cleaned up after."""

    async def finalize(self, axn: Axn[Thing]) -> None:
        """Nothing more than what the runtime does."""


def test_children_that_nobody_collects_go_with_their_owner_when_there_is_a_finalizer(
    sandbox: Sandbox, namespace: str
) -> None:
    with serving(operator_of(Collecting), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        assert sandbox.get("v1", "ConfigMap", "t1-far") is not None
        assert sandbox.get("v1", "PersistentVolume", "t1-volume") is not None

        sandbox.delete(*THING, "t1", namespace=namespace)

        sandbox.eventually(lambda: sandbox.get(*THING, "t1", namespace=namespace) is None)
        assert sandbox.get("v1", "ConfigMap", "t1-far") is None
        volume = sandbox.get("v1", "PersistentVolume", "t1-volume")
        # Kubernetes' own finalizer keeps a volume until its protection controller lets it go.
        assert volume is None or volume["metadata"]["deletionTimestamp"]
        assert sandbox.get("v1", "ConfigMap", "t1-near", namespace=namespace) is not None, "the collector's business"


def test_without_a_finalizer_they_are_named_in_a_warning(
    sandbox: Sandbox, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(operator_of(Scattered), sandbox.kubeconfig):
        sandbox.apply(thing("t2", namespace=namespace))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t2", namespace=namespace)) == ("True", "Succeeded")
        )
    told = [(record.message, vars(record).get("kind")) for record in caplog.records if record.levelname == "WARNING"]
    assert ("cluster-scoped children stay when their owner is deleted", "persistentvolumes") in told
    assert ("descendants stay when their owner is deleted", "configmaps") in told


# --- pruning ----------------------------------------------------------------------------------------------------------


def test_what_is_no_longer_registered_is_deleted_and_nothing_else(sandbox: Sandbox, namespace: str) -> None:
    with serving(operator_of(PartsController), sandbox.kubeconfig):
        (owner,) = sandbox.apply(thing("t1", namespace=namespace, parts=["a", "b", "c"]))
        sandbox.eventually(lambda: names(sandbox, namespace) == {"a", "b", "c"})
        # Looks like one of ours, but nobody of ours applied it.
        claimed = config_map("claimed", namespace=namespace)
        labels = (sandbox.get("v1", "ConfigMap", "a", namespace=namespace) or {})["metadata"]["labels"]
        claimed["metadata"]["labels"] = labels
        sandbox.apply(claimed)

        spec(sandbox, "t1", namespace, parts=["b"])

        until_reconciled(sandbox, "t1", namespace)  # written after everything that is pruned
        assert names(sandbox, namespace) == {"b", "claimed"}
        assert owner["metadata"]["uid"] == labels["bonny.dev/owner-uid"]


def test_what_was_dropped_while_no_process_ran_is_deleted_at_the_next_start(sandbox: Sandbox, namespace: str) -> None:
    operator = operator_of(PartsController)
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a", "b"]))
        sandbox.eventually(lambda: names(sandbox, namespace) == {"a", "b"})
    spec(sandbox, "t1", namespace, parts=["b"])
    with serving(operator, sandbox.kubeconfig):
        sandbox.eventually(lambda: names(sandbox, namespace) == {"b"})


def test_a_controller_with_two_handlers_does_not_prune(sandbox: Sandbox, namespace: str) -> None:
    class Two(PartsController):
        async def modify(self, axn: Axn[Thing]) -> None:
            axn.register_descendant(config_map("modified"))

    with serving(operator_of(Two), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a"]))
        sandbox.eventually(lambda: names(sandbox, namespace) == {"a"})
        until_reconciled(sandbox, "t1", namespace)
        spec(sandbox, "t1", namespace, parts=["b"])
        until_reconciled(sandbox, "t1", namespace)  # written after everything that is pruned
        assert names(sandbox, namespace) == {"a", "modified"}


def test_a_handling_that_halts_or_fails_prunes_nothing(sandbox: Sandbox, namespace: str) -> None:
    class Fickle(PartsController):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            if axn.spec.label == "halt":
                axn.halt()
            elif axn.spec.label == "fail":
                raise ValueError("no")
            else:
                await super().reconcile(axn)

    with serving(operator_of(Fickle), sandbox.kubeconfig) as at_work:
        for name in ("halted", "failed"):
            sandbox.apply(thing(name, namespace=namespace, parts=[name]))
        sandbox.eventually(lambda: names(sandbox, namespace) == {"halted", "failed"})
        worker = at_work.process.workers[0]
        sandbox.eventually(lambda: worker.handled == 2)
        spec(sandbox, "halted", namespace, label="halt", parts=[])
        sandbox.eventually(lambda: worker.handled == 3)
        spec(sandbox, "failed", namespace, label="fail", parts=[])
        until_reconciled(sandbox, "failed", namespace, "False", "HandlerFailed")
        assert names(sandbox, namespace) == {"halted", "failed"}


# --- recreating -------------------------------------------------------------------------------------------------------


def deployment(axn: Axn[Thing]) -> Resource:
    labels = {"app": axn.spec.label}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": axn.resource["metadata"]["name"]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": axn.spec.image}]},
            },
        },
    }


class Careful(Controller[Thing]):
    """Does not replace what cannot be changed."""

    owns = (Owned("apps/v1", "Deployment"),)
    recreate = False

    async def reconcile(self, axn: Axn[Thing]) -> None:
        axn.register_descendant(deployment(axn), recreate=self.recreate)


class Bold(Careful):
    """Replaces it."""

    recreate = True


def live_deployment(sandbox: Sandbox, namespace: str) -> Resource:
    found = sandbox.get("apps/v1", "Deployment", "t1", namespace=namespace)
    assert found is not None
    return found


def test_what_cannot_be_changed_is_explained(sandbox: Sandbox, namespace: str) -> None:
    with serving(operator_of(Careful), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        uid = sandbox.eventually(lambda: live_deployment(sandbox, namespace)["metadata"]["uid"])
        spec(sandbox, "t1", namespace, label="two")
        sandbox.eventually(lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("False", "Invalid"))
        (told,) = (sandbox.get(*THING, "t1", namespace=namespace) or {})["status"]["conditions"]
        assert "spec.selector" in told["message"]
        assert "recreate=True" in told["message"]
        events = sandbox.eventually(lambda: sandbox.items("events.k8s.io/v1", "Event", namespace=namespace))
        assert not [event["note"] for event in events if "recreate" in event["note"]]
        assert live_deployment(sandbox, namespace)["metadata"]["uid"] == uid


def test_with_recreate_it_is_deleted_and_created_anew(sandbox: Sandbox, namespace: str) -> None:
    with serving(operator_of(Bold), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        uid = sandbox.eventually(lambda: live_deployment(sandbox, namespace)["metadata"]["uid"])
        spec(sandbox, "t1", namespace, label="two")
        sandbox.eventually(lambda: live_deployment(sandbox, namespace)["metadata"]["uid"] != uid)
        assert live_deployment(sandbox, namespace)["spec"]["selector"]["matchLabels"] == {"app": "two"}
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )


def test_nothing_is_deleted_for_what_the_server_would_not_take(sandbox: Sandbox, namespace: str) -> None:
    with serving(operator_of(Bold), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        uid = sandbox.eventually(lambda: live_deployment(sandbox, namespace)["metadata"]["uid"])
        spec(sandbox, "t1", namespace, label="no label, this")
        sandbox.eventually(lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("False", "Invalid"))
        assert live_deployment(sandbox, namespace)["metadata"]["uid"] == uid


# --- related kinds ----------------------------------------------------------------------------------------------------


class Naming(Controller[Thing]):
    """Follows the Secret that its object names."""

    related = (
        Related("v1", "Secret", named_by=lambda thing: [name] if (name := thing["spec"].get("secret")) else []),
        Related(
            "v1", "Node", keys=lambda node: [tuple((node["metadata"].get("labels") or {}).get("for", "a.b").split("."))]
        ),
    )

    async def reconcile(self, axn: Axn[Thing]) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": axn.spec.secret or "none"}}
        found = axn.observed(secret)
        node = axn.observed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "related"}})
        phase = f"{'secret' if found else 'no secret'}, {'node' if node else 'no node'}"
        axn.update_status(lambda status: {**status, "phase": phase})


def test_a_related_object_that_comes_changes_or_goes_runs_those_that_it_concerns(
    sandbox: Sandbox, namespace: str
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1", "namespace": namespace}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "related", "labels": {"for": f"{namespace}.t1"}}}

    def phase_is(phase: str) -> bool:
        return bool((sandbox.get(*THING, "t1", namespace=namespace) or {})["status"]["phase"] == phase)

    with serving(operator_of(Naming), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, secret="s1"))
        sandbox.eventually(lambda: phase_is("no secret, no node"))
        sandbox.apply(secret)
        sandbox.eventually(lambda: phase_is("secret, no node"))
        sandbox.apply(node)
        sandbox.eventually(lambda: phase_is("secret, node"))
        sandbox.delete("v1", "Secret", "s1", namespace=namespace)
        sandbox.eventually(lambda: phase_is("no secret, node"))
        sandbox.delete("v1", "Node", "related")
        sandbox.eventually(lambda: phase_is("no secret, no node"))


# --- status -----------------------------------------------------------------------------------------------------------


def test_a_status_that_does_not_fit_the_schema_is_told(sandbox: Sandbox, namespace: str) -> None:
    class Wrong(Controller[Thing]):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            wrong = {"unknown": {"colour": "red"}, "mistyped": {"parts": "many"}, "null": {"note": None}}[
                axn.spec.label
            ]
            axn.update_status(lambda status: {**status, **wrong})

    with serving(operator_of(Wrong), sandbox.kubeconfig):
        # The API server names the field in free text alone, which may quote values, so it is left out (0100).
        for label, named in (
            ("unknown", "failed to create typed patch object"),
            ("mistyped", "failed to create typed patch object"),
            ("null", "status.note"),
        ):
            sandbox.apply(thing(label, namespace=namespace, label=label))
            live = sandbox.eventually(
                lambda label=label: (
                    found
                    if condition_of(found := sandbox.get(*THING, label, namespace=namespace)) == ("False", "Invalid")
                    else None
                )
            )
            (told,) = live["status"]["conditions"]
            assert named in told["message"]


def test_a_typed_status_sets_the_given_fields_and_removes_none(sandbox: Sandbox, namespace: str) -> None:
    class Typed(Controller[Thing]):
        async def reconcile(self, axn: Axn[Thing]) -> None:
            first = axn.spec.label == "first"
            axn.update_status(ThingStatus(note="new", parts=2) if first else ThingStatus(note=None))

    def status_is(**wanted: object) -> bool:
        status = (sandbox.get(*THING, "t1", namespace=namespace) or {}).get("status", {})
        return {name: status[name] for name in ("note", "parts") if name in status} == wanted

    with serving(operator_of(Typed), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, label="first"))
        sandbox.eventually(lambda: status_is(note="new", parts=2))
        sandbox.apply(thing("t1", namespace=namespace, label="second"))
        sandbox.eventually(lambda: status_is(parts=2))


def test_a_status_can_be_written_early_and_is_written_once(sandbox: Sandbox, namespace: str, proxy: FaultProxy) -> None:
    class Early(compat.Controller[Thing]):
        async def reconcile(self, axn: compat.Axn[Thing]) -> None:
            axn.update_status(lambda status: {**status, "phase": "Working"})
            await axn.safe_apply_status()

    with serving(operator_of(Early), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        assert (sandbox.get(*THING, "t1", namespace=namespace) or {})["status"]["phase"] == "Working"
    writes = [request.status for request in proxy.requests if request.method == "PATCH"]
    assert writes == [200, 200], "the status, then the runtime's own condition; no conflict between the two"


# --- many -------------------------------------------------------------------------------------------------------------


def test_one_object_may_have_250_descendants(sandbox: Sandbox, namespace: str, proxy: FaultProxy) -> None:
    parts = [f"part-{number}" for number in range(250)]
    with serving(operator_of(PartsController), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=parts))
        sandbox.eventually(lambda: names(sandbox, namespace) == set(parts), within_seconds=30.0)
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        assert proxy.count(lambda request: request.method == "PATCH" and "configmaps" in request.path) == 250
        spec(sandbox, "t1", namespace, parts=parts[:10])
        sandbox.eventually(lambda: names(sandbox, namespace) == set(parts[:10]), within_seconds=30.0)
        assert proxy.count(lambda request: request.method == "DELETE") == 240


# --- steps and hooks --------------------------------------------------------------------------------------------------


def test_own_steps_and_hooks_change_what_is_sent(sandbox: Sandbox, namespace: str) -> None:
    order: list[str] = []

    def tagging(axn: compat.Axn[Any]) -> None:
        def tag(word: str) -> Any:
            def hook(descendants: list[Resource], axn: compat.Axn[Any]) -> list[Resource]:
                order.append(word)
                return [{**known, "data": {**known["data"], "tag": word}} for known in descendants]

            return hook

        axn.register_before_apply_descendants(tag("registered first"))
        axn.register_before_apply_descendants(tag("registered last"))
        axn.register_before_apply_status(
            lambda resource, _: {**resource, "status": {**resource["status"], "phase": "Hooked"}}
        )
        axn.register_after_processed(lambda axn: order.append(f"processed {axn.identifier()[0]}"))

    class Tagged(PartsController):
        axn_class = compat.Axn
        steps = (tagging,)

    with serving(operator_of(Tagged), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["a"]))
        sandbox.eventually(
            lambda: condition_of(sandbox.get(*THING, "t1", namespace=namespace)) == ("True", "Succeeded")
        )
        made = sandbox.get("v1", "ConfigMap", "a", namespace=namespace)
        sandbox.eventually(lambda: len(order) == 3)
    assert made is not None
    assert made["data"] == {"size": "1", "tag": "registered first"}
    assert order == ["registered last", "registered first", f"processed {namespace}/t1"]
    assert (sandbox.get(*THING, "t1", namespace=namespace) or {})["status"]["phase"] == "Hooked"


def test_an_autoscaler_keeps_the_field_that_it_owns(sandbox: Sandbox, namespace: str) -> None:
    with serving(operator_of(Careful), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(lambda: live_deployment(sandbox, namespace))
        scale = f"/apis/apps/v1/namespaces/{namespace}/deployments/t1/scale"
        assert sandbox.request("PATCH", scale, {"spec": {"replicas": 7}}, content_type=MERGE).status == 200
        spec(sandbox, "t1", namespace, image="nginx:2")
        sandbox.eventually(
            lambda: (
                live_deployment(sandbox, namespace)["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
            )
        )
        assert live_deployment(sandbox, namespace)["spec"]["replicas"] == 7


def test_a_controller_can_be_configured_for_one_operator(sandbox: Sandbox, namespace: str) -> None:
    class Options(Controller[Any]):
        resource = Kind("v1", "ConfigMap")
        options: ClassVar[dict[str, str]] = {"greeting": "hello"}

        async def reconcile(self, axn: Axn[Any]) -> None:
            greeted.append((str(axn.key), self.options["greeting"]))

    greeted: list[tuple[str, str]] = []
    configured = Options.configured(namespace=namespace, options={"greeting": "good day"})
    with serving(operator_of(configured), sandbox.kubeconfig):
        sandbox.apply(config_map("elsewhere", namespace="default"))
        sandbox.apply(config_map("here", namespace=namespace))  # created later: what it follows is handled before it
        sandbox.eventually(lambda: (f"{namespace}/here", "good day") in greeted)
    assert greeted == [(f"{namespace}/here", "good day")]
    sandbox.delete("v1", "ConfigMap", "elsewhere")
