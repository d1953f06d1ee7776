"""The path from a change to the cluster and back, with a hand-written operator on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bonny.client.api import JSON, Client
from bonny.client.config import Kubeconfig
from bonny.client.request import ApiRequest
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.handwritten import operator
from tests.support.processes import OperatorProcess, handwritten, writes

GROUP = "example.com"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
OWNER_UID = "bonny.dev/owner-uid"


def widget(name: str, *, size: int = 1, mode: str = "good", namespace: str = "default") -> Resource:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": size, "mode": mode},
    }


def conditions(resource: Resource | None) -> dict[str, Resource]:
    return {known["type"]: known for known in ((resource or {}).get("status") or {}).get("conditions", ())}


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds(operator.crds, GROUP))


@pytest.fixture
def at_work(sandbox: Sandbox, start_operator: Start) -> Iterator[OperatorProcess]:
    """The hand-written operator, ready; its objects are removed afterwards."""
    yield start_operator(handwritten()).wait_ready()
    remove_all(sandbox)


def remove_all(sandbox: Sandbox) -> None:
    for api_version, kind in ((f"{GROUP}/v1", "Widget"), (f"{GROUP}/v1", "Region"), ("apps/v1", "Deployment")):
        for found in sandbox.items(api_version, kind):
            metadata = found["metadata"]
            sandbox.delete(api_version, kind, metadata["name"], namespace=metadata.get("namespace", ""))
    for found in sandbox.items("v1", "ConfigMap"):
        sandbox.delete("v1", "ConfigMap", found["metadata"]["name"], namespace=found["metadata"]["namespace"])


def live(sandbox: Sandbox, name: str) -> Resource | None:
    return sandbox.get(f"{GROUP}/v1", "Widget", name)


def child(sandbox: Sandbox, name: str) -> Resource | None:
    return sandbox.get("v1", "ConfigMap", name)


def until_data(sandbox: Sandbox, name: str, data: dict[str, str]) -> Resource:
    return sandbox.eventually(
        lambda: found if (found := child(sandbox, name)) is not None and found["data"] == data else None
    )


def test_a_new_object_gets_its_child_and_a_status(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    (owner,) = sandbox.apply(widget("w1", size=3))

    made = until_data(sandbox, "w1", {"size": "3"})
    status = sandbox.eventually(lambda: (live(sandbox, "w1") or {}).get("status"))

    uid = owner["metadata"]["uid"]
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "handwritten", OWNER_UID: uid}
    assert [(known["kind"], known["uid"]) for known in made["metadata"]["ownerReferences"]] == [("Widget", uid)]
    assert status["observedGeneration"] == 1
    told = {known["type"]: (known["status"], known["reason"]) for known in status["conditions"]}
    assert told == {"Ready": ("True", "Ready"), "Reconciled": ("True", "Succeeded")}


def test_a_change_reaches_the_child_and_an_edited_or_deleted_child_comes_back(
    sandbox: Sandbox, at_work: OperatorProcess
) -> None:
    sandbox.apply(widget("w1", size=3))
    until_data(sandbox, "w1", {"size": "3"})

    sandbox.apply(widget("w1", size=7))
    until_data(sandbox, "w1", {"size": "7"})
    path = "/api/v1/namespaces/default/configmaps/w1"
    sandbox.request("PATCH", path, {"data": {"size": "99"}}, content_type="application/merge-patch+json")
    until_data(sandbox, "w1", {"size": "7"})
    sandbox.delete("v1", "ConfigMap", "w1")
    until_data(sandbox, "w1", {"size": "7"})


def test_fields_that_others_set_on_a_child_stay(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    sandbox.apply(widget("w1", size=3))
    until_data(sandbox, "w1", {"size": "3"})
    path = "/api/v1/namespaces/default/configmaps/w1"
    sandbox.request("PATCH", path, {"data": {"theirs": "yes"}}, content_type="application/merge-patch+json")

    sandbox.apply(widget("w1", size=4))

    until_data(sandbox, "w1", {"size": "4", "theirs": "yes"})


def test_delete_is_called_once_with_the_last_state(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    sandbox.apply(widget("w1", size=3))
    until_data(sandbox, "w1", {"size": "3"})

    sandbox.delete(f"{GROUP}/v1", "Widget", "w1")
    sandbox.apply(widget("w2"))
    until_data(sandbox, "w2", {"size": "1"})

    sandbox.eventually(lambda: "deleted default/w1 size=3" in at_work.text)
    # Another object of that name is handled after everything that the end of the first one asks for.
    sandbox.delete("v1", "ConfigMap", "w1")
    sandbox.apply(widget("w1", size=4))
    until_data(sandbox, "w1", {"size": "4"})
    assert at_work.text.count("deleted default/w1") == 1


def test_a_re_created_object_is_a_delete_of_the_old_one_and_an_add(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    sandbox.apply(widget("w1", size=3))
    until_data(sandbox, "w1", {"size": "3"})

    sandbox.delete(f"{GROUP}/v1", "Widget", "w1")
    sandbox.delete("v1", "ConfigMap", "w1")
    (owner,) = sandbox.apply(widget("w1", size=4))

    made = until_data(sandbox, "w1", {"size": "4"})
    assert made["metadata"]["labels"][OWNER_UID] == owner["metadata"]["uid"]
    sandbox.eventually(lambda: "deleted default/w1 size=3" in at_work.text)


def test_an_object_of_somebody_else_is_neither_adopted_nor_overwritten(
    sandbox: Sandbox, at_work: OperatorProcess
) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w1", "namespace": "default"}}
    sandbox.apply({**theirs, "data": {"precious": "yes"}})
    before = child(sandbox, "w1")

    sandbox.apply(widget("w1", size=3))

    told = sandbox.eventually(lambda: conditions(live(sandbox, "w1")).get("Reconciled"))
    assert (told["status"], told["reason"]) == ("False", "ForeignObject")
    assert "ConfigMap default/w1" in told["message"]
    assert conditions(live(sandbox, "w1"))["Ready"]["status"] == "False"
    assert child(sandbox, "w1") == before


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("raises", "HandlerFailed"),
        ("retries", "Retry"),
        ("terminal", "Terminal"),
        ("slow", "Timeout"),
        ("exits", "HandlerFailed"),
        ("panics", "HandlerFailed"),
    ],
)
def test_a_failed_reconcile_is_reported_and_delays_no_other_object(
    sandbox: Sandbox, at_work: OperatorProcess, mode: str, reason: str
) -> None:
    sandbox.apply(widget("bad", mode=mode))
    sandbox.apply(widget("good"))

    until_data(sandbox, "good", {"size": "1"})
    told = sandbox.eventually(lambda: conditions(live(sandbox, "bad")).get("Reconciled"))
    assert (told["status"], told["reason"]) == ("False", reason)
    assert "secret" not in str((live(sandbox, "bad") or {})["status"])
    assert child(sandbox, "bad") is None

    sandbox.apply(widget("bad", mode="good", size=5))
    until_data(sandbox, "bad", {"size": "5"})
    sandbox.eventually(lambda: conditions(live(sandbox, "bad"))["Reconciled"]["status"] == "True")


@pytest.fixture
def loose_schema(sandbox: Sandbox) -> Iterator[None]:
    """The server takes anything as a Widget, as with an older or hand-edited CRD."""
    (crd,) = [known for known in crds(operator.crds, GROUP) if known["spec"]["names"]["kind"] == "Widget"]
    loose: Resource = {**crd, "spec": {**crd["spec"], "versions": [dict(crd["spec"]["versions"][0])]}}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}
    }

    def until_answered(status: int) -> None:
        """With what the server says of an impossible size."""
        sandbox.eventually(
            lambda: sandbox.request("POST", f"{WIDGETS}?dryRun=All", widget("size", size=4711)).status == status
        )

    sandbox.apply(loose)
    try:
        until_answered(201)
        yield
    finally:
        sandbox.delete(f"{GROUP}/v1", "Widget", "bad")
        sandbox.apply(crd)
        until_answered(422)


@pytest.mark.usefixtures("loose_schema")
def test_an_object_that_does_not_fit_its_schema_fails_alone(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    sandbox.apply(widget("bad", size=4711))
    sandbox.apply(widget("good"))

    until_data(sandbox, "good", {"size": "1"})
    told = sandbox.eventually(lambda: conditions(live(sandbox, "bad")).get("Reconciled"))
    assert (told["status"], told["reason"]) == ("False", "Invalid")
    assert "spec.size" in told["message"]
    assert "4711" not in told["message"]


async def create_deep(sandbox: Sandbox, *, levels: int) -> None:
    """A Widget that is nested too deeply for `json` to encode."""
    nested = b'{"a":' * levels + b"1" + b"}" * levels
    head = msgspec.json.encode(widget("bad")).removesuffix(b"}}")
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="tests/1") as client:
        answer = await client.exchange(
            ApiRequest("POST", WIDGETS, headers={"Content-Type": JSON}, body=head + b',"nested":' + nested + b"}}")
        )
    assert answer.status == 201, answer.body


# In this order, so that the nested object goes before others are read: the test's own decoder cannot follow it either.
@pytest.mark.usefixtures("at_work", "loose_schema")
def test_an_object_that_is_nested_too_deeply_fails_alone(
    sandbox: Sandbox, at_work: OperatorProcess, start_operator: Start
) -> None:
    """Regression: nobody could decode it, and no object of its kind was handled any more. By event, then by list."""
    asyncio.run(create_deep(sandbox, levels=1_500))
    sandbox.apply(widget("good"))
    until_data(sandbox, "good", {"size": "1"})
    assert at_work.stop()[0] == 0

    again = start_operator(handwritten()).wait_ready()
    sandbox.apply(widget("good", size=2))

    until_data(sandbox, "good", {"size": "2"})
    for process in (at_work, again):
        failed = {line["object"]: line["error"] for line in process.lines("reconcile failed")}
        assert failed == {"default/bad": "default/bad is nested deeper than 400 levels: make it flatter"}


def test_a_cluster_scoped_owner_and_a_core_kind_are_served_as_well(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    region = {"apiVersion": f"{GROUP}/v1", "kind": "Region", "metadata": {"name": "north"}, "spec": {"colour": "blue"}}
    labels = {"app": "web"}
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"watched": "yes"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    }
    sandbox.apply([region, deployment])

    made = until_data(sandbox, "region-north", {"colour": "blue"})
    assert made["metadata"]["ownerReferences"][0]["kind"] == "Region"
    until_data(sandbox, "deployment-web", {"replicas": "2"})
    # It looks at its child, so it is run once more when that is there.
    sandbox.eventually(
        lambda: conditions(sandbox.get(f"{GROUP}/v1", "Region", "north")).get("Ready", {}).get("status") == "True"
    )


def test_an_object_that_only_leaves_the_selection_is_not_deleted(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"watched": "yes"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "w", "image": "w"}]}},
        },
    }
    sandbox.apply(deployment)
    until_data(sandbox, "deployment-web", {"replicas": "1"})
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    unlabelled = {"metadata": {"labels": {"watched": None}}}
    sandbox.request("PATCH", path, unlabelled, content_type="application/merge-patch+json")
    sandbox.apply({**deployment, "metadata": {**deployment["metadata"], "name": "other"}})
    until_data(sandbox, "deployment-other", {"replicas": "1"})

    sandbox.delete("apps/v1", "Deployment", "other")

    sandbox.eventually(lambda: "deleted deployment default/other" in at_work.text)
    assert "deleted deployment default/web" not in at_work.text


def test_at_rest_and_after_a_restart_nothing_is_written(sandbox: Sandbox, start_operator: Start) -> None:
    """100 objects are handled every second, by one process and then by the next; nobody sends a write."""
    first = start_operator(handwritten()).wait_ready()
    names = [f"w{number}" for number in range(100)]
    sandbox.apply([widget(name, size=5) for name in names])
    sandbox.eventually(
        lambda: all(conditions(known).get("Reconciled") for known in sandbox.items(f"{GROUP}/v1", "Widget"))
    )
    before = writes(sandbox, "widgets", "configmaps")

    def times(process: OperatorProcess) -> int:
        handled = [line["object"] for line in process.lines("reconciled")]
        return min(handled.count(f"default/{name}") for name in names)

    sandbox.eventually(lambda: times(first) >= 5, within_seconds=30)
    assert first.stop()[0] == 0
    second = start_operator(handwritten()).wait_ready()
    sandbox.eventually(lambda: times(second) >= 3, within_seconds=30)

    assert writes(sandbox, "widgets", "configmaps") == before
    remove_all(sandbox)


def test_what_happened_while_nobody_looked_is_repaired_at_the_start(sandbox: Sandbox, start_operator: Start) -> None:
    first = start_operator(handwritten()).wait_ready()
    sandbox.apply([widget("edited", size=2), widget("deleted", size=2), widget("changed", size=2)])
    for name in ("edited", "deleted", "changed"):
        until_data(sandbox, name, {"size": "2"})
    first.process.kill()
    first.process.wait()
    path = "/api/v1/namespaces/default/configmaps/edited"
    sandbox.request("PATCH", path, {"data": {"size": "99"}}, content_type="application/merge-patch+json")
    sandbox.delete("v1", "ConfigMap", "deleted")
    sandbox.apply([widget("changed", size=8), widget("created", size=9)])

    start_operator(handwritten()).wait_ready()

    for name, size in (("edited", "2"), ("deleted", "2"), ("changed", "8"), ("created", "9")):
        until_data(sandbox, name, {"size": size})
    remove_all(sandbox)


def test_sigterm_ends_it_within_five_seconds_with_exit_code_0(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    sandbox.apply(widget("w1"))
    until_data(sandbox, "w1", {"size": "1"})

    code, seconds = at_work.stop()

    assert code == 0
    assert seconds < 5
    assert [line["message"] for line in (*at_work.lines("stopping"), *at_work.lines("stopped"))] == [
        "stopping",
        "stopped",
    ]


def test_a_thread_that_never_returns_holds_its_object_and_nothing_else(sandbox: Sandbox, start_operator: Start) -> None:
    at_work = start_operator(handwritten(), BONNY_GRACE_SECONDS="1").wait_ready()
    region = {"apiVersion": f"{GROUP}/v1", "kind": "Region", "metadata": {"name": "stuck"}, "spec": {"colour": "stuck"}}
    sandbox.apply(region)
    told = sandbox.eventually(lambda: conditions(sandbox.get(f"{GROUP}/v1", "Region", "stuck")).get("Reconciled"))
    assert told["reason"] == "Timeout"
    sandbox.apply({**region, "metadata": {"name": "other"}, "spec": {"colour": "red"}})
    until_data(sandbox, "region-other", {"colour": "red"})

    code, seconds = at_work.stop()

    assert (code, seconds < 5) == (0, True)
    remove_all(sandbox)


@pytest.mark.parametrize("colour", ["exits", "stops", "panics"])
def test_no_error_of_a_def_handler_delays_other_objects(
    sandbox: Sandbox, at_work: OperatorProcess, colour: str
) -> None:
    """Regression: StopIteration kept its slot for ever, and sys.exit() ended the operator."""
    region = {"apiVersion": f"{GROUP}/v1", "kind": "Region", "metadata": {"name": "bad"}, "spec": {"colour": colour}}
    sandbox.apply(region)
    told = sandbox.eventually(lambda: conditions(sandbox.get(f"{GROUP}/v1", "Region", "bad")).get("Reconciled"))
    assert told["reason"] == "HandlerFailed"
    sandbox.apply({**region, "spec": {"colour": "red"}})
    until_data(sandbox, "region-bad", {"colour": "red"})


def test_a_thread_of_the_handlers_own_does_not_hold_up_the_end(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    """Regression: the event loop waited for its thread pool without end."""
    sandbox.apply(widget("bad", mode="in-a-thread"))
    sandbox.eventually(lambda: conditions(live(sandbox, "bad"))["Reconciled"]["reason"] == "Timeout")

    code, seconds = at_work.stop()

    assert (code, seconds < 5) == (0, True)


def test_a_delete_that_gives_up_does_not_hold_up_who_takes_the_name(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    """Regression: the new object of the name was not handled while the old one's delete was owed."""
    sandbox.apply(widget("w1", size=2, mode="undeletable"))
    until_data(sandbox, "w1", {"size": "2"})

    sandbox.delete(f"{GROUP}/v1", "Widget", "w1")
    sandbox.delete("v1", "ConfigMap", "w1")
    sandbox.apply(widget("w1", size=3))

    until_data(sandbox, "w1", {"size": "3"})
    assert at_work.lines("gave up calling delete")


def test_a_strangers_status_does_not_cut_short_a_failing_objects_wait(
    sandbox: Sandbox, at_work: OperatorProcess
) -> None:
    """Regression: every status write of another controller made a failing handler run again at once."""
    sandbox.apply(widget("bad", mode="raises"))
    sandbox.eventually(lambda: len(at_work.lines("reconcile failed")) >= 4)
    path = f"{WIDGETS}/bad/status"
    for number in range(40):
        change = {"status": {"observedGeneration": number % 2}}
        assert sandbox.request("PATCH", path, change, content_type="application/merge-patch+json").status == 200
    sandbox.apply(widget("good"))
    until_data(sandbox, "good", {"size": "1"})

    assert len(at_work.lines("reconcile failed")) < 20


def test_the_probes_say_what_is_followed(sandbox: Sandbox, at_work: OperatorProcess) -> None:
    assert at_work.probe("/healthz") == (200, "ok\n")
    status, body = at_work.probe("/readyz")
    assert status == 200
    assert "widgets.example.com: in sync, 0 objects" in body


def test_a_missing_crd_blocks_its_own_controller_only(sandbox: Sandbox, start_operator: Start) -> None:
    name = "regions.example.com"
    sandbox.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    sandbox.eventually(lambda: sandbox.request("GET", "/apis/example.com/v1/regions").status == 404)
    at_work = start_operator(handwritten()).wait_ready()
    try:
        sandbox.apply(widget("w1", size=6))
        until_data(sandbox, "w1", {"size": "6"})
        assert "regions.example.com: missing" in at_work.probe("/readyz")[1]
    finally:
        sandbox.apply(crds(operator.crds, GROUP))
    region = {"apiVersion": f"{GROUP}/v1", "kind": "Region", "metadata": {"name": "late"}, "spec": {"colour": "red"}}
    sandbox.apply(region)
    sandbox.eventually(lambda: child(sandbox, "region-late"), within_seconds=40)
    remove_all(sandbox)


@pytest.mark.slow  # A7 in tests/faults/test_api_server.py does this in the middle of more work
def test_an_api_server_that_is_killed_and_comes_back_loses_nothing(start_operator: Start) -> None:
    with Sandbox() as own:
        own.apply(crds(operator.crds, GROUP))
        at_work = start_operator(handwritten(), kubeconfig=own.kubeconfig).wait_ready()
        own.apply(widget("before", size=2))
        until_data(own, "before", {"size": "2"})

        own.apiserver.kill()
        own.apiserver.start()
        own.apply([widget("before", size=3), widget("after", size=4)])

        for name, size in (("before", "3"), ("after", "4")):
            own.eventually(
                lambda name=name, size=size: (child(own, name) or {})["data"] == {"size": size}, within_seconds=40
            )
        assert at_work.process.poll() is None


@pytest.mark.parametrize(
    ("arguments", "settings", "telling"),
    [
        (["dance"], {}, "use run, config, version or help"),
        ([], {"BONNY_HTTP_PORT": "http"}, "BONNY_HTTP_PORT"),
        ([], {"BONNY_KUBECONFIG": "/nowhere/kubeconfig"}, "/nowhere/kubeconfig"),
        ([], {"BONNY_CONTEXT": "nowhere"}, "'nowhere'"),
    ],
)
def test_python_m_refuses_what_cannot_work_in_one_sentence_with_code_2(
    start_operator: Start, arguments: list[str], settings: dict[str, str], telling: str
) -> None:
    refused = start_operator([*handwritten(), *arguments], **settings)
    assert refused.process.wait(20) == 2
    # Imports on a loaded machine may block the loop for seconds, which is logged.
    lines = refused.text.strip().splitlines()
    (sentence,) = (line for line in lines if '"the event loop is blocked"' not in line)
    assert telling in sentence


def test_python_m_tells_its_version_and_its_settings(start_operator: Start) -> None:
    told = [start_operator([*handwritten(), word]) for word in ("version", "help")]
    assert [process.process.wait(20) for process in told] == [0, 0]
    assert told[0].text == "handwritten/1.0.0\n"
    assert "BONNY_WATCH_NAMESPACE" in told[1].text
