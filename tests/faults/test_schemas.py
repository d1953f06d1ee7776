"""Rows E: what users write, and what the next release brings (docs/reliability.md)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bonny.errors import InvalidObject
from bonny.resource import Resource
from bonny_dev.crd import check_object, schema_of
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.faults.scene import SEEN_SECONDS, Scene, behind_a_proxy
from tests.support import evolving
from tests.support.evolving import GROUP, RELEASE, Gear, shown
from tests.support.specs import values

COMMAND = [sys.executable, str(Path(evolving.__file__))]
DEFINITIONS = {"1": crds(evolving.first.crds, GROUP), "2": crds(evolving.second.crds, GROUP)}
# One operator for all examples: a function that asks for a fixture gets it once.
CHANGES = settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)


@pytest.fixture
def gears(sandbox: Sandbox, start_operator: Start) -> Iterator[Scene]:
    """The evolving operator behind a proxy; its kind is gone afterwards."""
    with behind_a_proxy(sandbox, start_operator) as made:
        yield made
    for name in sandbox.items(f"{GROUP}/v1alpha1", "Gear"):
        sandbox.delete("v1", "ConfigMap", f"gear-{name['metadata']['name']}")
    (definition,) = DEFINITIONS["1"]
    kind, name = definition["kind"], definition["metadata"]["name"]
    sandbox.delete(definition["apiVersion"], kind, name)
    sandbox.eventually(lambda: sandbox.get(definition["apiVersion"], kind, name) is None)


def begin(scene: Scene, release: str) -> None:
    """Install a release and start it, in place of the one before."""
    scene.sandbox.apply(DEFINITIONS[release])
    scene.begin(COMMAND, **{RELEASE: release}).wait_ready(within_seconds=SEEN_SECONDS)


def gear(name: str, spec: Resource | None = None, *, version: str = "v2alpha1") -> Resource:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Gear", "metadata": metadata, "spec": spec or {}}


def child(scene: Scene, name: str) -> Resource:
    found: Any = scene.sandbox.get("v1", "ConfigMap", f"gear-{name}")
    result: Resource = found
    return result


def until_shown(scene: Scene, name: str) -> None:
    """Return when the child shows what the live object says."""
    scene.sandbox.eventually(
        lambda: child(scene, name)["data"]["spec"] == wanted(scene, name), within_seconds=SEEN_SECONDS
    )


def wanted(scene: Scene, name: str) -> str:
    live: Any = scene.sandbox.get(f"{GROUP}/v2alpha1", "Gear", name)
    spec = Gear.spec_of(live)
    assert isinstance(spec, evolving.GearSpec)
    return shown(spec)


def test_e3_an_object_recovers_from_every_change_of_its_spec_when_it_is_changed_back(gears: Scene) -> None:
    begin(gears, "2")
    first = {"size": 3, "teeth": [{"name": "a"}], "tags": ["x"]}
    gears.sandbox.apply([gear("fresh", first), gear("changed", first)])
    until_shown(gears, "fresh")
    until_shown(gears, "changed")
    schema = schema_of(Gear)["properties"]["spec"]

    @CHANGES
    @given(spec=values(schema).filter(_fits).map(lambda given: check_object(Gear, gear("any", given))["spec"]))
    def changes(spec: Resource) -> None:
        gears.sandbox.apply(gear("changed", spec))
        if spec["mode"].startswith("good"):
            until_shown(gears, "changed")
        gears.sandbox.apply(gear("changed", first))
        until_shown(gears, "changed")
        assert child(gears, "changed")["data"] == child(gears, "fresh")["data"]

    changes()


def _fits(spec: Any) -> bool:
    """Whether it can be applied: the API server reads an apply as YAML, which lacks some characters of JSON."""
    text = json.dumps(spec, ensure_ascii=False)
    try:
        check_object(Gear, gear("any", spec))
    except (InvalidObject, TypeError):
        return False
    return isinstance(spec, dict) and text.isascii() and text.isprintable()


def test_e5_a_release_with_a_newer_version_continues_with_the_objects_of_the_previous_release(gears: Scene) -> None:
    begin(gears, "1")
    gears.sandbox.apply([gear(f"old-{n}", {"size": n}, version="v1alpha1") for n in (1, 2, 3)])
    for n in (1, 2, 3):
        gears.sandbox.eventually(lambda n=n: f'"size": {n}' in child(gears, f"old-{n}")["data"]["spec"])
    children = {n: child(gears, f"old-{n}") for n in (1, 2, 3)}
    gears.operator.stop()
    since = time.monotonic()

    begin(gears, "2")
    gears.sandbox.apply(gear("old-1", {"size": 11}, version="v1alpha1"))
    gears.sandbox.apply(gear("new", {"size": 4}))
    for name in ("old-1", "old-2", "old-3", "new"):
        until_shown(gears, name)

    for n in (2, 3):
        now = child(gears, f"old-{n}")
        assert (now["metadata"]["uid"], now["data"]) == (children[n]["metadata"]["uid"], children[n]["data"])
    for version, streams in (("v1alpha1", False), ("v2alpha1", True)):
        path = f"/apis/{GROUP}/{version}/gears"
        assert bool(gears.proxy.count(lambda request, path=path: request.path == path, since=since)) is streams
    assert gears.sandbox.get(f"{GROUP}/v1alpha1", "Gear", "new")["spec"]["size"] == 4  # type: ignore[index]
