"""No values: whatever the API server says about an object that it refuses, we repeat nothing of what the object holds.

Fields, reasons, names and constant phrases are repeated: without them nobody could tell what to do.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from bonny import Axn, Controller, Owned, Resource
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import LEFT_OUT, Refusal
from bonny.errors import ADVICE
from bonny.kinds import Kind
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.filled import Filling, Schemas, kinds
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    Thing,
    config_map,
    operator_of,
    own_namespace,
    spec,
    thing,
)

SECRET = "hunter2"
# Whatever ends a quoted value, or begins another part of a sentence, stands before and behind it.
NASTY = f'a": b {SECRET}\\": [c], {{d}} \n{SECRET} field is immutable: "{SECRET}'
ENCODED = tuple(base64.b64encode(text.encode()).decode().rstrip("=") for text in (SECRET, NASTY))
FILLINGS = (
    Filling(SECRET),
    Filling(NASTY),
    Filling(NASTY, typed=False),
    Filling(SECRET, twice=True),
    Filling(NASTY, undeclared=True),
)
AT_ONCE = 16


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="no-values/1.0") as made:
        yield made


def leaks(text: str) -> bool:
    return any(secret in text for secret in (SECRET, *ENCODED))


async def refused(client: Client, kind: Kind, resource: Resource) -> Refusal | None:
    """What an apply without consequences is answered with; None when it is taken."""
    try:
        await client.apply(kind, resource, manager="no-values", dry_run=True)
    except Refusal as error:
        return error
    return None


async def all_refused(client: Client, wanted: Iterable[tuple[Kind, Resource]]) -> list[Refusal]:
    """The refusals of all that is not taken, a few asked for at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(kind: Kind, resource: Resource) -> Refusal | None:
        async with slots:
            return await refused(client, kind, resource)

    outcomes = await asyncio.gather(*(one(kind, resource) for kind, resource in wanted))
    return [outcome for outcome in outcomes if outcome is not None]


def told(error: Refusal) -> str:
    """All that a log, a status or an event could take of it."""
    return f"{error!s} {error!r} {error.message} {error.causes} {getattr(error, '__notes__', '')} {vars(error)}"


def assert_silent(errors: Iterable[Refusal], caplog: pytest.LogCaptureFixture) -> None:
    assert [text for text in map(told, errors) if leaks(text)] == []
    assert [record for record in caplog.records if leaks(str(vars(record)))] == []


def with_values() -> list[Kind]:
    """The kinds whose objects may hold a secret: all but definitions, which are code."""
    return [kind for kind in kinds() if kind.kind != "CustomResourceDefinition"]


async def test_no_refusal_of_any_built_in_kind_repeats_what_the_object_holds(
    sandbox: Sandbox, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: the text was cut where values seemed to end, and JSON values end elsewhere."""
    caplog.set_level(logging.DEBUG)
    schemas = {
        api_version: Schemas(sandbox, api_version) for api_version in {kind.api_version for kind in with_values()}
    }
    filled = [(kind, schemas[kind.api_version].fill(kind, filling)) for kind in with_values() for filling in FILLINGS]

    errors = await all_refused(client, filled)

    assert_silent(errors, caplog)
    # Otherwise nothing was provoked: each kind was refused in most ways, and for reasons that can be read.
    assert len(with_values()) > 60
    assert len(errors) > len(filled) * 0.8
    assert sum(error.message != LEFT_OUT for error in errors) > len(errors) * 0.9


@pytest.mark.slow
async def test_no_refusal_of_any_single_field_repeats_what_it_holds(
    sandbox: Sandbox, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Some ten thousand requests, so it is slow: where all fields are filled, one refusal can hide another."""
    caplog.set_level(logging.DEBUG)
    schemas = {
        api_version: Schemas(sandbox, api_version) for api_version in {kind.api_version for kind in with_values()}
    }

    for kind in with_values():
        singles = ((kind, resource) for resource in schemas[kind.api_version].single(kind, NASTY))
        assert_silent(await all_refused(client, singles), caplog)


def environment(text: str) -> Resource:
    return {"containers": [{"name": "c", "image": "x", "env": [{"name": "PASSWORD", "value": text}]}]}


def template(text: str, **more: Any) -> Resource:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {**environment(text), **more}}


def of(api_version: str, kind: str, **fields: Any) -> Resource:
    metadata = {"name": "frozen", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


SELECTOR = {"selector": {"matchLabels": {"app": "x"}}}
RULES = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io"}
# What may not be changed once it is there; the function makes it with a text in it.
FROZEN: dict[str, Callable[[str], Resource]] = {
    "Job": lambda text: of("batch/v1", "Job", spec={"template": template(text, restartPolicy="Never")}),
    "Pod": lambda text: of("v1", "Pod", spec=environment(text)),
    "Deployment": lambda text: of(
        "apps/v1",
        "Deployment",
        spec={
            "selector": {"matchLabels": {"app": text}},
            "template": {**template(text), "metadata": {"labels": {"app": text}}},
        },
    ),
    "StatefulSet": lambda text: of(
        "apps/v1", "StatefulSet", spec={**SELECTOR, "serviceName": text, "template": template(text)}
    ),
    "Secret": lambda text: of("v1", "Secret", immutable=True, stringData={"password": text}),
    "ConfigMap": lambda text: of("v1", "ConfigMap", immutable=True, data={"password": text}),
    "PersistentVolumeClaim": lambda text: of(
        "v1",
        "PersistentVolumeClaim",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": text,
        },
    ),
    "RoleBinding": lambda text: of("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef={**RULES, "name": text}),
    "StorageClass": lambda text: of(
        "storage.k8s.io/v1", "StorageClass", provisioner="example.com/disk", parameters={"password": text}
    ),
}


@pytest.fixture
def frozen(sandbox: Sandbox) -> Iterator[None]:
    """One object of each, with another value than the one that will be asked for."""
    made = [make("hunter1") for make in FROZEN.values()]
    sandbox.apply(made)
    yield
    for resource in made:
        if resource["kind"] == "Pod":
            sandbox.request("DELETE", "/api/v1/namespaces/default/pods/frozen?gracePeriodSeconds=0")
        else:
            sandbox.delete(resource["apiVersion"], resource["kind"], "frozen")


@pytest.mark.usefixtures("frozen")
async def test_no_refusal_of_a_change_repeats_the_old_value_or_the_new_one(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wanted = {name: make(SECRET) for name, make in FROZEN.items()}

    errors = {
        name: await refused(client, Kind(resource["apiVersion"], resource["kind"]), resource)
        for name, resource in wanted.items()
    }

    assert {name for name, error in errors.items() if error is None} == set()
    assert_silent(filter(None, errors.values()), caplog)
    assert [name for name, error in errors.items() if "hunter" in told(error or Refusal.__new__(Refusal))] == []
    texts = {name: getattr(error, "message", "") for name, error in errors.items()}
    assert texts["Job"] == "spec.template: Invalid: field is immutable"
    assert texts["Deployment"] == "spec.selector: Invalid: field is immutable"
    assert texts["Secret"] == "data: Forbidden: field is immutable"
    assert texts["StatefulSet"] == "spec: Forbidden: field is immutable"
    assert texts["Pod"] == "spec: Forbidden: field is immutable"


POLICY = "admissionregistration.k8s.io/v1"


def policy(name: str, namespace: str) -> list[Resource]:
    """A policy that refuses ConfigMaps of that name, and quotes them."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    validation = {
        "expression": f"object.metadata.name != '{name}'",
        "messageExpression": "'the password is ' + object.data.password",
    }
    constraints = {"resourceRules": rules, "namespaceSelector": selector}
    fields = {"failurePolicy": "Fail", "matchConstraints": constraints, "validations": [validation]}
    binding = {"policyName": "quoting", "validationActions": ["Deny"]}
    return [
        {"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "quoting"}, "spec": fields},
        {
            "apiVersion": POLICY,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "quoting"},
            "spec": binding,
        },
    ]


def quota(namespace: str) -> Resource:
    metadata = {"name": "none", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"secrets": "0"}}}


def said_of(resource: Resource | None) -> str:
    """The message of `Reconciled`."""
    conditions = ((resource or {}).get("status") or {}).get("conditions", ())
    return next((known["message"] for known in conditions if known["type"] == "Reconciled"), "")


class Refused(Controller[Thing]):
    """Registers what is refused, with a password in it; `label` says which."""

    owns = (Owned("batch/v1", "Job"), Owned("v1", "ConfigMap"), Owned("v1", "Secret"))

    async def reconcile(self, axn: Axn[Thing]) -> None:
        """One child."""
        password = axn.spec.secret
        match axn.spec.label:
            case "changed":
                child = of("batch/v1", "Job", spec={"template": template(password, restartPolicy="Never")})
            case "policy":
                child = config_map("denied", password=password)
            case _:
                child = of("v1", "Secret", stringData={"password": password})
        axn.register_descendant({**child, "metadata": {"name": "denied"}})


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    sandbox.apply(crds([Thing], GROUP))
    with own_namespace(sandbox) as name:
        yield name


TEXTS = {
    "changed": "cannot apply jobs.batch {0}/denied (422): spec.template: Invalid: field is immutable; "
    "advice: recreate=True would delete it with its data and create it again",
    "policy": "cannot apply configmaps {0}/denied (422): Invalid; " + LEFT_OUT,
    "quota": "cannot apply secrets {0}/denied (403): Forbidden; " + LEFT_OUT,
}


def events_of(sandbox: Sandbox, namespace: str) -> list[str]:
    """The notes of the warnings in this namespace."""
    found = sandbox.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").body["items"]
    return [event["note"] for event in found if event["type"] == "Warning"]


def is_told(sandbox: Sandbox, namespace: str, name: str, text: str) -> bool:
    """In the status, with advice for the author, and in an event without it."""
    status = said_of(sandbox.get(*THING, name, namespace=namespace))
    fact, _, _ = text.partition(f"; {ADVICE}")
    return status.startswith(text) and any(
        note.startswith(fact) and ADVICE not in note for note in events_of(sandbox, namespace)
    )


def test_a_refused_child_is_reported_without_the_password_that_it_holds(
    sandbox: Sandbox, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In the status, in an event, in the log; and each says what is wrong, and where."""
    caplog.set_level(logging.DEBUG)
    sandbox.apply([*policy("denied", namespace), quota(namespace)])
    # What a controller of Kubernetes does, which does not run here: without it nothing is counted.
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/none/status"
    counted = {"status": {"hard": {"secrets": "0"}, "used": {"secrets": "0"}}}
    assert sandbox.request("PATCH", path, counted, content_type=MERGE).status == 200
    probe = config_map("denied", namespace=namespace, password="x")
    created = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    try:
        # A policy holds from some moment after it was made.
        sandbox.eventually(lambda: sandbox.request("POST", created, probe).status == 422, within_seconds=30.0)
        with serving(operator_of(Refused), sandbox.kubeconfig):
            for label, expected in TEXTS.items():
                sandbox.apply(thing(label, namespace=namespace, label=label, secret="hunter1"))
                if label == "changed":
                    sandbox.eventually(lambda: sandbox.get("batch/v1", "Job", "denied", namespace=namespace))
                    spec(sandbox, label, namespace, secret=SECRET)

                told = partial(is_told, sandbox, namespace, label, expected.format(namespace))
                sandbox.eventually(told, within_seconds=30.0)
            things = str(sandbox.items(*THING, namespace=namespace))
            status = [str(known["status"]) for known in sandbox.items(*THING, namespace=namespace)]
            notes = events_of(sandbox, namespace)
    finally:
        for made in policy("denied", namespace):
            sandbox.delete(made["apiVersion"], made["kind"], "quoting")

    assert SECRET in things, "the objects hold it"
    assert [text for text in (*status, *notes) if "hunter" in text] == []
    assert [record for record in caplog.records if "hunter" in str(vars(record))] == []
