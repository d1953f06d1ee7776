"""Objects that only somebody hostile writes, and that the API server lets through: each costs itself alone.

An operator with controllers (status changes count), watchers and schedulers runs on a real server. Objects with texts,
sizes, depths and types of all sorts are created and changed beside ordinary ones. The ordinary ones must be handled
exactly once, no stream may fall, and whatever can be decoded must be handled, too.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bonny import Axn, Controller, Field, Kind, List, Operator, Resource, Scope, Spec, Status, Version, Watcher
from bonny.api import WithObservedGeneration
from bonny.api.markers import PreserveUnknown
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.request import ApiRequest, path_of
from bonny.filters import fits, least_allocated
from bonny.resource import MANAGED_BY, OWNER_UID
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import PodView
from bonny_dev.crd.definition import crds
from bonny_dev.crd.schema import structural
from bonny_dev.sandbox import Sandbox
from tests.support.scheduling import node, pod
from tests.support.serving import Serving, serving
from tests.support.specs import values

GROUP = "hostile.example.com"
NAMESPACE = "hostile"
MERGE = "application/merge-patch+json"
JSON = "application/json"
EXAMPLES = 40
EDITS = 3
BYSTANDERS = 5


class AnythingSpec(Spec):
    """A field of each type, and one for whatever else there is."""

    text: str = ""
    texts: list[str] = Field(default_factory=list)
    words: dict[str, str] = Field(default_factory=dict)
    number: int = 0
    share: float = 0.5
    flag: bool = False
    free: Annotated[dict[str, Any], PreserveUnknown()] = Field(default_factory=dict)


class AnythingStatus(Status, WithObservedGeneration):
    """The same for those who write it."""

    text: str = ""
    free: Annotated[dict[str, Any], PreserveUnknown()] = Field(default_factory=dict)


class Anything(Version):
    """A kind of the operator's own."""

    kind = "Anything"
    plural = "anythings"
    version = "v1"
    storage = True
    hub = True
    spec: AnythingSpec = AnythingSpec()
    status: AnythingStatus


ANYTHING = Anything.as_kind(GROUP)
CONFIG_MAP, SECRET = Kind("v1", "ConfigMap"), Kind("v1", "Secret")
REVISION = Kind("apps/v1", "ControllerRevision")
POD, NODE = Kind("v1", "Pod"), Kind("v1", "Node")
handled: Counter[tuple[str, str]] = Counter()
"""By part and name of the object; filled in handlers, looked at in tests."""

finalized: list[tuple[str, Resource]] = []


class Things(Controller[Anything]):
    """With a finalizer, and woken by every change of a status."""

    on_status = True

    async def reconcile(self, axn: Axn[Anything]) -> None:
        handled["controller", axn.key.name] += 1
        json.dumps(axn.resource)

    async def finalize(self, axn: Axn[Anything]) -> None:
        finalized.append((axn.key.name, axn.resource["spec"]))


class BuiltIn(Controller[Any]):
    """Kinds without a generation, and one that holds whatever JSON it is given."""

    resource = (CONFIG_MAP, REVISION)
    on_status = True

    async def reconcile(self, axn: Axn[Any]) -> None:
        handled["controller", axn.key.name] += 1


class _Noting(Watcher):
    async def add(self, resource: Resource) -> None:
        handled["watcher", resource["metadata"]["name"]] += 1


class OfThings(_Noting):
    operation = List(f"{GROUP}/v1", "Anything", plural="anythings", scope=Scope.NAMESPACED)


class OfMaps(_Noting):
    operation = List("v1", "ConfigMap", namespace=NAMESPACE)


class OfRevisions(_Noting):
    operation = List("apps/v1", "ControllerRevision")


class Even(Scheduler):
    """Looks at whole objects, as the selection of a user does."""

    name = "even"
    check = fits
    seen: ClassVar[Counter[str]] = Counter()

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        self.seen[pod.name] += all(known["metadata"]["name"] and known["status"] for known in (pod, *nodes))
        return nodes.fitting(pod).best(least_allocated)


# --- what is generated ------------------------------------------------------------------------------------------------

# What this runtime, its formats or their readers could take for something else than text.
TEXTS = (
    *(
        "bonny.dev: nested too deeply",
        '"bonny.dev: nested too deeply"',
        "{\t}",
        "[\t]",
        "\t",
        "\\",
        '"',
        "'",
        "`",
        "\\u",
    ),
    *(
        "\0",
        "\x1b[2J",
        "\x7f",
        "\x85",
        "\r\n",
        "\n---\n",
        "\u2028\u2029",
        "\u202eevil",
        "\ufeff",
        "\ufffd",
        "\U0001f600",
    ),
    *(
        "\ud800",
        "\udc00\ud83d",
        "\\ud800",
        "null",
        "~",
        "{{ x }}",
        "%s%n",
        "${x}",
        "<script>",
        "9" * 5_000,
        "x" * 60_000,
    ),
    *(
        OWNER_UID,
        MANAGED_BY,
        "metadata",
        "bonny.dev/owner-uid: x",
        "even",
        "kubectl.kubernetes.io/last-applied-configuration",
    ),
)
texts = st.sampled_from(TEXTS) | st.text(max_size=20)
names = st.from_regex(r"[a-z][-a-z0-9]{0,20}[a-z0-9]", fullmatch=True)
keys = names | st.sampled_from((OWNER_UID, MANAGED_BY, "bonny.dev/nested-too-deeply", "kubernetes.io/hostname"))
numbers = st.sampled_from((0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 0.1, -0.0, 1e300, 5e-324))
leaves = st.none() | st.booleans() | numbers | texts
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
labels = st.dictionaries(keys, names, max_size=3)
annotations = st.dictionaries(keys, texts, max_size=3)
quantities = st.sampled_from(("0", "1", "100m", "1e3", "0.5n", "12E", "1e100", "9" * 60, "1Ki", ".5", "5.", "+1"))
SPEC = structural(AnythingSpec, where="AnythingSpec")


def anythings() -> st.SearchStrategy[Resource]:
    """Specs by their own schema, or with texts of all sorts."""
    free = st.dictionaries(texts, json_values, max_size=4)
    odd = {"text": texts, "texts": st.lists(texts, max_size=4), "words": st.dictionaries(texts, texts), "free": free}
    spec = values(SPEC) | st.fixed_dictionaries({}, optional=odd)
    return st.fixed_dictionaries({"spec": spec})


def maps() -> st.SearchStrategy[Resource]:
    return st.fixed_dictionaries({"data": st.dictionaries(keys.map(lambda key: key.replace("/", ".")), texts)})


def revisions() -> st.SearchStrategy[Resource]:
    """The API server keeps their data as it was written, half a surrogate too."""
    return st.fixed_dictionaries({"revision": st.just(1), "data": st.dictionaries(texts, json_values, max_size=4)})


def pods() -> st.SearchStrategy[Resource]:
    """Most of them fit nowhere, or ask for what no scheduler knows."""
    operators = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    bounds = st.sampled_from(([], ["1"], ["9" * 63], ["x"], ["a", "b"]))
    expression = st.fixed_dictionaries({"key": keys, "operator": operators, "values": bounds})
    term = st.fixed_dictionaries({}, optional={"matchExpressions": st.lists(expression, max_size=2)})
    required = st.fixed_dictionaries({"nodeSelectorTerms": st.lists(term, min_size=1, max_size=2)})
    affinity = st.fixed_dictionaries({"requiredDuringSchedulingIgnoredDuringExecution": required})
    requests = st.dictionaries(st.sampled_from(("cpu", "memory", "example.com/gpu")), quantities, max_size=2)

    def made(asked: Mapping[str, str], value: str, more: Resource) -> Resource:
        container = {"name": "main", "image": "i", "env": [{"name": "A", "value": value}]}
        limits = {name: amount for name, amount in asked.items() if "/" in name}
        container["resources"] = {"requests": dict(asked), **({"limits": limits} if limits else {})}
        return {"spec": {"containers": [container], "schedulerName": "even", **more}}

    more = {
        "nodeSelector": labels,
        "affinity": st.fixed_dictionaries({"nodeAffinity": affinity}),
        "tolerations": st.lists(st.fixed_dictionaries({"key": keys, "operator": st.just("Exists")}), max_size=2),
    }
    return st.builds(made, requests, texts, st.fixed_dictionaries({}, optional=more))


def nodes() -> st.SearchStrategy[Resource]:
    """None has room, so that no pod of a test is bound to one."""
    allocatable = st.dictionaries(st.sampled_from(("cpu", "memory", "example.com/gpu")), quantities)
    return st.builds(lambda amounts: {"status": {"allocatable": {**amounts, "pods": "0"}}}, allocatable)


CONTENT = {ANYTHING: anythings(), CONFIG_MAP: maps(), REVISION: revisions(), POD: pods(), NODE: nodes()}


Made: TypeAlias = list[tuple[Kind, str, list[Resource]]]


def generated(examples: int) -> Made:
    """Hostile objects, as many of each kind: kind, name, and one version for each edit.

    They change with the code: hypothesis draws the constants that it finds there.
    """
    made: Made = []
    metadata = st.fixed_dictionaries({}, optional={"labels": labels, "annotations": annotations})

    for kind, content in CONTENT.items():
        of_this_kind = st.lists(st.tuples(metadata, content), min_size=EDITS, max_size=EDITS)

        @settings(
            max_examples=examples // len(CONTENT),
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(kind=st.just(kind), versions=of_this_kind)
        def collect(kind: Kind, versions: list[tuple[Resource, Resource]]) -> None:
            name = f"evil-{len(made)}"
            made.append((kind, name, [{**drawn, "metadata": {**found, "name": name}} for found, drawn in versions]))

        collect()
    return made


# --- the server and the operator --------------------------------------------------------------------------------------


def send(sandbox: Sandbox, method: str, path: str, body: bytes = b"", *, content_type: str = JSON) -> tuple[int, bytes]:
    """A request as bytes: neither Python's encoder nor its decoder follows what is nested too deeply."""

    async def exchange() -> tuple[int, bytes]:
        async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="hostile/1.0") as client:
            headers = {"Content-Type": content_type} if body else {}
            answer = await client.exchange(ApiRequest(method, path, headers=headers, body=body or None))
            return answer.status, answer.body

    return asyncio.run(exchange())


def collection(kind: Kind) -> str:
    return path_of(kind, NAMESPACE if kind.namespaced else None)


def create(sandbox: Sandbox, kind: Kind, resource: Resource) -> bool:
    """Whether the API server took it."""
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, **resource}
    status, body = send(sandbox, "POST", collection(kind), json.dumps(whole).encode())
    assert status in (201, 400, 403, 413, 422, 500), body[:500]
    return status == 201


def edit(sandbox: Sandbox, kind: Kind, name: str, change: Resource, *, subresource: str = "") -> bool:
    path = path_of(kind, NAMESPACE if kind.namespaced else None, name, subresource)
    return send(sandbox, "PATCH", path, json.dumps(change).encode(), content_type=MERGE)[0] == 200


def ordinary(kind: Kind, name: str) -> Resource:
    match kind.kind:
        case "Pod":
            return {**pod(name, namespace=NAMESPACE, scheduler="even"), "status": {}}
        case "ControllerRevision":
            return {"metadata": {"name": name}, "revision": 1, "data": {"a": 1}}
        case "ConfigMap":
            return {"metadata": {"name": name}, "data": {"a": "1"}}
    return {"metadata": {"name": name}, "spec": {"text": "ordinary"}}


FOLLOWED = (ANYTHING, CONFIG_MAP, REVISION)


class Scene:
    """The running operator, beside what must not be touched by what a test does."""

    def __init__(self, sandbox: Sandbox, at_work: Serving, caplog: pytest.LogCaptureFixture) -> None:
        self.sandbox, self.process, self._caplog = sandbox, at_work.process, caplog
        self._made = 0
        self.bystanders = [self.join(f"by-{number}") for number in range(BYSTANDERS)]

    def join(self, name: str) -> str:
        """Create an ordinary object of each kind, and wait until each is handled."""
        self._made += 1
        for kind in (*FOLLOWED, POD):
            assert create(self.sandbox, kind, ordinary(kind, f"{name}-{kind.kind.lower()}"))
        self.sandbox.eventually(lambda: self.counts(name), within_seconds=60.0)
        return name

    def counts(self, name: str) -> dict[str, int]:
        """How often each part handled its object of that name; empty while one has not."""
        found = {
            f"{part} {kind.kind}": handled[part, f"{name}-{kind.kind.lower()}"]
            for part in ("controller", "watcher")
            for kind in FOLLOWED
        }
        bound = self.sandbox.get("v1", "Pod", f"{name}-pod", namespace=NAMESPACE)
        assert bound is not None
        found["scheduler"] = Even.seen[f"{name}-pod"] if bound["spec"].get("nodeName") else 0
        return found if all(found.values()) else {}

    def failures(self) -> set[tuple[str, str, str]]:
        """Object, action and error of each reconcile that failed."""
        failed = [vars(known) for known in self._caplog.records if known.getMessage() == "reconcile failed"]
        return {(known["object"], known["action"], known["error"]) for known in failed}

    def nobody_else_noticed(self) -> None:
        """A last object of each kind is handled: by then each stream has shown all that came before it."""
        names = [*self.bystanders, self.join(f"last-{self._made}")]
        for name in names:
            assert set(self.counts(name).values()) == {1}, (name, self.counts(name))
        watchers = [
            stream for server in self.process.servers if isinstance(server, Watcher) for stream in server.streams
        ]
        for stream in (*self.process.streams, *watchers):
            assert (str(stream), stream.lists, dict(stream.errors), stream.error) == (str(stream), 1, {}, None)
        records = self._caplog.records
        assert [known.getMessage() for known in records if known.levelno >= logging.ERROR] == []
        said = {known.object for known in records if known.getMessage() == "reconcile failed"}  # type: ignore[attr-defined]
        ordinary_ones = {f"{NAMESPACE}/{name}-{kind.kind.lower()}" for name in names for kind in FOLLOWED}
        assert said.isdisjoint(ordinary_ones)
        assert self.process.health().ok
        assert self.process.readiness().ok


@pytest.fixture(scope="module")
def _ready(sandbox: Sandbox) -> Iterator[None]:
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    sandbox.apply(crds([Anything], GROUP))
    assert create(sandbox, NODE, node("n1", cpu="1000", memory="1000Gi", pods="1000"))
    yield
    # By hand: what reads whole lists would read what is nested too deeply.
    for kind in (*CONTENT,):
        send(sandbox, "DELETE", f"{collection(kind)}?gracePeriodSeconds=0")


@pytest.fixture
def scene(sandbox: Sandbox, _ready: None, caplog: pytest.LogCaptureFixture) -> Iterator[Scene]:
    handled.clear()
    finalized.clear()
    Even.seen.clear()
    parts = (Things, BuiltIn, OfThings, OfMaps, OfRevisions)
    operator = Operator(name="hostile", group=GROUP, controllers=(*parts, Even))
    with serving(operator, sandbox.kubeconfig, leader_election=False) as at_work:
        yield Scene(sandbox, at_work, caplog)
        for kind in (*FOLLOWED, POD):
            send(sandbox, "DELETE", f"{collection(kind)}?gracePeriodSeconds=0")
        ends = collection(ANYTHING)
        sandbox.eventually(
            lambda: json.loads(send(sandbox, "GET", f"{ends}?limit=1")[1])["items"] == [], within_seconds=60
        )


# Requested before `scene`: a running operator draws from `random`, and hypothesis refuses it when the state of that
# changes while it draws.
@pytest.fixture
def some() -> Made:
    return generated(EXAMPLES)


@pytest.fixture
def many() -> Made:
    return generated(600)


def put(scene: Scene, objects: Made) -> Counter[str]:
    """Create and edit them; returns how many of each kind the API server took."""
    taken: Counter[str] = Counter()
    expected: set[tuple[str, str]] = set()
    for kind, name, versions in objects:
        if not create(scene.sandbox, kind, versions[0]):
            continue
        taken[kind.kind] += 1
        for version in versions[1:]:
            # Of a pod next to nothing can be changed but its metadata.
            edit(scene.sandbox, kind, name, {"metadata": version["metadata"]} if kind is POD else version)
            if kind in (ANYTHING, POD, NODE):
                status = version.get("status", {"message": name, "text": name})
                assert edit(scene.sandbox, kind, name, {"status": status}, subresource="status") or kind is NODE
        if kind in FOLLOWED:
            expected |= {("controller", name), ("watcher", name)}
    scene.sandbox.eventually(lambda: expected <= handled.keys(), within_seconds=60.0)
    return taken


def test_a_text_of_this_runtime_is_a_text_like_any_other(scene: Scene) -> None:
    """Regression: an annotation of a pod that fits nowhere ended its scheduler, again and again, for all pods.

    The same text in a ConfigMap made every ConfigMap be handled again, and in a node each choice that reads nodes fail.
    """
    noted = {"annotations": {"note": "bonny.dev: nested too deeply"}}
    mark = noted["annotations"]["note"]
    assert edit(scene.sandbox, NODE, "n1", {"metadata": noted})
    evil = {**pod("evil", namespace=NAMESPACE, cpu="100000", scheduler="even"), "status": {}}
    assert create(scene.sandbox, POD, {**evil, "metadata": {**evil["metadata"], **noted}})
    edits = [{"metadata": {"name": "evil", **noted}, "data": {"x": mark, "edit": str(n)}} for n in range(EDITS)]
    things = [{"metadata": {"name": "evil-thing", **noted}, "spec": {"text": mark, "number": n}} for n in range(EDITS)]

    put(scene, [(CONFIG_MAP, "evil", edits), (ANYTHING, "evil-thing", things)])

    scene.nobody_else_noticed()
    found = scene.sandbox.eventually(lambda: scene.sandbox.get("v1", "Pod", "evil", namespace=NAMESPACE))
    (told,) = (known for known in found["status"]["conditions"] if known["type"] == "PodScheduled")
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")


def test_texts_and_types_of_all_sorts_cost_no_other_object_anything(some: Made, scene: Scene) -> None:
    """All that is generated can be decoded, so all of it is handled."""
    taken = put(scene, some)

    assert set(taken) == {kind.kind for kind in CONTENT}, taken
    assert sum(taken.values()) > EXAMPLES / 2, taken
    scene.nobody_else_noticed()


@pytest.mark.slow(reason="600 generated objects take a minute")
def test_many_texts_and_types_of_all_sorts_cost_nobody_anything(many: Made, scene: Scene) -> None:
    put(scene, many)

    scene.nobody_else_noticed()


DEEP = b'{"a":' * 1_500 + b"1" + b"}" * 1_500


@pytest.mark.parametrize("kind", [ANYTHING, REVISION], ids=["own kind", "built-in kind"])
def test_depth_costs_its_object_alone(scene: Scene, kind: Kind) -> None:
    """By events of a creation and of edits. Regression: each edit made every object of its kind be handled again."""
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "deep"}}
    field = b'"spec":{"text":"t","free":' if kind is ANYTHING else b'"revision":1,"data":{"x":'
    raw = json.dumps(whole)[:-1].encode() + b"," + field + DEEP + b"}}"
    status, answer = send(scene.sandbox, "POST", collection(kind), raw)
    assert status == 201, answer[:300]
    for number in range(EDITS):
        assert edit(scene.sandbox, kind, "deep", {"metadata": {"annotations": {"edit": str(number)}}})
        if kind is ANYTHING:
            path = path_of(kind, NAMESPACE, "deep", "status")
            change = b'{"status":{"text":"%d","free":' % number + DEEP + b"}}"
            assert send(scene.sandbox, "PATCH", path, change, content_type=MERGE)[0] == 200

    scene.nobody_else_noticed()
    assert handled["controller", "deep"] == handled["watcher", "deep"] == 0


def test_an_object_that_became_too_deep_is_finalized_when_it_is_flatter(scene: Scene) -> None:
    """Its finalizer waits for a person, and the log names the object; nothing else waits."""
    assert create(scene.sandbox, ANYTHING, {"metadata": {"name": "leaves"}, "spec": {"text": "bucket-1"}})
    path = path_of(ANYTHING, NAMESPACE, "leaves")
    scene.sandbox.eventually(lambda: handled["controller", "leaves"])
    change = b'{"spec":{"free":' + DEEP + b"}}"
    assert send(scene.sandbox, "PATCH", path, change, content_type=MERGE)[0] == 200
    assert b"finalizers" in send(scene.sandbox, "GET", path)[1]

    assert send(scene.sandbox, "DELETE", path)[0] == 200

    failed = (
        f"{NAMESPACE}/leaves",
        "finalize",
        f"{NAMESPACE}/leaves is nested deeper than 400 levels: make it flatter",
    )
    scene.sandbox.eventually(lambda: failed in scene.failures())
    scene.nobody_else_noticed()
    assert finalized == []
    assert send(scene.sandbox, "PATCH", path, b'{"spec":{"free":null}}', content_type=MERGE)[0] == 200

    scene.sandbox.eventually(lambda: send(scene.sandbox, "GET", path)[0] == 404)
    assert [(name, spec["text"]) for name, spec in finalized] == [("leaves", "bucket-1")]


def test_size_costs_no_other_object_anything(scene: Scene) -> None:
    """As much as etcd takes in one object (1.5 MiB): one text, many items, many keys."""
    text = "x" * 1_000_000
    large = [
        (CONFIG_MAP, "large", {"data": {"a": text}}),
        (ANYTHING, "large-thing", {"spec": {"text": text}}),
        (ANYTHING, "items", {"spec": {"texts": [f"item {number}" for number in range(10_000)]}}),
        (REVISION, "keys", {"revision": 1, "data": {f"{number:x}": 0 for number in range(100_000)}}),
        (REVISION, "list", {"revision": 1, "data": {"list": [{"name": str(number)} for number in range(50_000)]}}),
    ]
    versions = [
        (kind, name, [{**content, "metadata": {"name": name}}, {"metadata": {"labels": {"edit": "1"}}}])
        for kind, name, content in large
    ]

    assert put(scene, versions).total() == len(large)

    scene.nobody_else_noticed()
