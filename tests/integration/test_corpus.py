"""Definitions of others, and objects of their kinds: what the classes say judges and stores as the original does.

BONNY_CRDS=FOLDER BONNY_OBJECTS=FOLDER pytest -s tests/integration/test_corpus.py

Of each definition the stored version is taken. The objects are all that some YAML file holds, and mutants of them.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from operator import getitem, setitem
from pathlib import Path
from typing import Any, Final, cast

import pytest
import yaml

from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.from_crd.port import Port, port
from bonny_dev.from_crd.reading import read_crd
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator

CRDS, OBJECTS = os.environ.get("BONNY_CRDS", ""), os.environ.get("BONNY_OBJECTS", "")
pytestmark = [pytest.mark.server, pytest.mark.skipif(not (CRDS and OBJECTS), reason="no definitions, or no objects")]

# Of more objects of one kind no mutants are made.
WITH_MUTANTS: Final = 40
WRONG: Final = (None, {"unknown": [1]}, "text", "x" * 5_000, -3)
CHANGES: Final[tuple[Callable[[Any, Any], object], ...]] = (
    lambda parent, field: parent.pop(field),
    *(functools.partial(lambda value, parent, field: setitem(parent, field, value), value) for value in WRONG),
)
Type = tuple[str, str]


def test_a_definition_without_differences_judges_and_stores_as_its_original(sandbox: Sandbox) -> None:
    kinds = dict(kind_of(path) for path in sorted(Path(CRDS).rglob("*.yaml")))
    originals = [original for original, _ in kinds.values()]
    ours = [each for _, ported in kinds.values() for each in crds([ported.hub_class], "example.com")]
    tally, unexplained = Counter[str](), []
    with (
        Sandbox() as another,
        Administrator(sandbox) as one,
        Administrator(another) as other,
        one.installed(originals),
        other.installed(ours),
    ):
        for of, resource in objects(kinds):
            original, ported = kinds[of]
            path = f"{collection_of(original)}?dryRun=All&fieldValidation=Strict"
            first, second = (server.request("POST", path, resource) for server in (one, other))
            taken = first.status == 201
            equal = first.status == second.status and not (taken and content(first.body) != content(second.body))
            tally.update(sent=1, taken=taken, differ=not equal)
            if not equal:
                print(f"\n{of}: {first.status} {first.message}\n  ours: {second.status} {second.message}")
                unexplained += [] if ported.differences else [resource]
    print(f"\n{len(kinds)} kinds: {dict(tally)}")
    assert unexplained == []


def kind_of(path: Path) -> tuple[Type, tuple[Resource, Port]]:
    """Its apiVersion and name, the definition with the stored version alone, and the classes of that."""
    crd, _ = read_crd(str(path))
    spec = {key: value for key, value in crd["spec"].items() if key != "conversion"}
    (stored,) = spec["versions"] = [{**each, "served": True} for each in spec["versions"] if each["storage"]]
    metadata = {key: crd["metadata"][key] for key in ("name", "labels", "annotations") if key in crd["metadata"]}
    original = {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata, "spec": spec}
    of = (f"{spec['group']}/{stored['name']}", spec["names"]["kind"])
    return of, (original, port(original, group="example.com"))


def collection_of(crd: Resource) -> str:
    spec = crd["spec"]
    namespace = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{namespace}{spec['names']['plural']}"


def objects(kinds: Mapping[Type, object]) -> Iterator[tuple[Type, Resource]]:
    chance, found = random.Random(1), defaultdict[Type, int](int)
    for path in sorted(Path(OBJECTS).rglob("*.y*ml")):
        try:
            documents = [each for each in yaml.safe_load_all(path.read_text("utf-8")) if isinstance(each, dict)]
        except (yaml.YAMLError, UnicodeDecodeError, ValueError):
            continue  # a template of one, or not text
        for document in documents:
            of = (str(document.get("apiVersion")), str(document.get("kind")))
            if of not in kinds:
                continue
            found[of] += 1
            resource = json.loads(json.dumps({**document, "metadata": {"name": "tried"}}, default=str))
            yield of, resource
            if found[of] <= WITH_MUTANTS:
                yield from ((of, mutant) for mutant in mutants(resource, chance))


def content(resource: Resource) -> Resource:
    return {key: value for key, value in resource.items() if key != "metadata"}


def mutants(resource: Resource, chance: random.Random) -> Iterator[Resource]:
    """The object with each of the changes, at a field that chance chooses."""
    fields = [path for path in paths(resource) if path[0] not in ("apiVersion", "kind", "metadata")]
    for change in CHANGES if fields else ():
        mutant, (*parents, field) = copy.deepcopy(resource), chance.choice(fields)
        change(functools.reduce(getitem, parents, cast("Any", mutant)), field)
        yield mutant


def paths(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    steps = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield (*path, step)
        yield from paths(value[step], *path, step)
