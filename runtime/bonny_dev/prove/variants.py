"""Variants: the forms that the sample of a kind takes in its life: as written, changed, and with fields removed.

The API server judges each form, by a dry run: it knows the rules of the kind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bonny.client.api import APPLY
from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource

from ..crd.definition import crds
from ..install import is_served, kind_of, kinds_of, misspelt, read_documents
from ..sandbox.admin import Admin


@dataclass(frozen=True, slots=True)
class Sample:
    """The objects of one file in samples/: `subjects`, which the operator handles, and what surrounds them."""

    name: str
    """Of the file, without its ending."""

    surroundings: Sequence[Resource]
    subjects: Sequence[Resource]
    changed: Sequence[Resource]
    """The subjects with other values in their specs; empty where no other value is valid."""

    reduced: Sequence[Resource]
    """The same without their optional fields; empty where there is none."""

    back: Sequence[Resource] = ()
    """The subjects once more, after they were changed; empty: they are not changed back."""


def samples_of(
    operator: Operator, folder: Path, given: Mapping[str, str] | None = None
) -> tuple[list[Sample], list[str]]:
    """The samples to live through, still without other forms, and a sentence about each that is left out.

    `given` are texts of YAML by name, instead of the files in `folder`.

    Raises: `UsageError` when a file cannot be read, or there is no sample of a kind that the operator handles.
    """
    handled = {kind.gvk: kind for controller in operator.controllers for kind in controller.kinds(operator.group)}
    converted = {hub.kind for hub in operator.converted}
    found, notes, seen = list[Sample](), list[str](), set[tuple[str, str]]()
    paths = [Path(f"{name}.yaml") for name in given] if given else sorted(folder.glob("*.y*ml"))
    for path in paths:
        text = given[path.stem] if given else path.read_bytes()
        documents = read_documents(f"{folder.name}/{path.name}", text)
        for document in documents:
            if problem := misspelt(document, operator):
                raise UsageError(f"{folder.name}/{path.name}: {problem}")
        subjects = [each for each in documents if _gvk(each) in handled and is_served(operator, each)]
        names = {(each["kind"], each["metadata"]["name"]) for each in subjects}
        if not subjects:
            notes.append(f"{path.name} is left out: no controller handles its objects")
        elif converted & {kind for kind, _ in names}:
            notes.append(f"{path.name} is left out: its kind is converted by a webhook, which does not outlive a crash")
        elif not names <= seen:
            seen |= names
            others = [each for each in documents if each not in subjects and is_served(operator, each)]
            found.append(Sample(path.stem, others, subjects, (), ()))
    if not found:
        raise UsageError(
            f"{folder}/ holds no sample of a kind that the operator handles, so there is nothing to prove: add one; "
            + "; ".join(notes or ["it holds no YAML file"])
        )
    return found, notes


def placed(operator: Operator, document: Resource, namespace: str) -> Resource:
    """A copy of `document` in `namespace`, if its kind has namespaces."""
    moved = copy.deepcopy(document)
    if kind_of(document, kinds_of(operator)).namespaced:
        moved["metadata"]["namespace"] = namespace
    return moved


def with_variants(operator: Operator, sample: Sample, admin: Admin, namespace: str) -> Sample:
    """`sample` with its other forms, found by dry runs on objects in `namespace`, while no operator runs.

    Raises: `SandboxError` when the API server refuses the sample as it is written.
    """
    names = {each["metadata"]["name"] for each in (*sample.surroundings, *sample.subjects)}
    changed, reduced = list[Resource](), list[Resource]()
    try:
        for each in (*sample.surroundings, *sample.subjects):
            admin.apply(placed(operator, each, namespace))
        for each in sample.subjects:

            def is_valid(form: Resource) -> bool:
                return would_be_valid(admin, placed(operator, form, namespace))

            schema = schema_of(operator, each)
            other = _changed(each, schema, names, is_valid)
            admin.apply(placed(operator, other, namespace))  # the next form is a change of this one
            changed.append(other)
            reduced.append(reduced_form(other, schema, is_valid))
    finally:
        for each in (*sample.subjects, *sample.surroundings):
            admin.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], namespace=namespace)
    subjects = list(sample.subjects)
    return Sample(
        sample.name,
        sample.surroundings,
        subjects,
        changed if changed != subjects else (),
        reduced if reduced != changed else (),
    )


def _gvk(document: Resource) -> tuple[str, str]:
    return document["apiVersion"], document["kind"]


def schema_of(operator: Operator, document: Resource) -> Mapping[str, Any]:
    """The schema of the spec of an own kind; empty for other kinds."""
    for crd in crds(operator.crds, operator.group):
        for version in crd["spec"]["versions"]:
            if _gvk(document) == (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]):
                schema: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"].get("spec", {})
                return schema
    return {}


def would_be_valid(admin: Admin, form: Resource) -> bool:
    """Whether the API server would store this form of an object that exists, and of a new one: an object that loses
    its whole spec may be valid where a new one is not."""
    new = {**form, "metadata": {**form["metadata"], "name": f"{form['metadata']['name']}-new"}}
    return all(_would_be_stored(admin, each) for each in (form, new))


def _would_be_stored(admin: Admin, form: Resource) -> bool:
    path = admin.path_of(
        form["apiVersion"], form["kind"], namespace=form["metadata"].get("namespace"), name=form["metadata"]["name"]
    )
    query = "?dryRun=All&fieldManager=sandbox&force=true&fieldValidation=Strict"
    return admin.request("PATCH", path + query, form, content_type=APPLY).status in (200, 201)


def _changed(
    sample: Resource, schema: Mapping[str, Any], names: set[str], is_valid: Callable[[Resource], bool]
) -> Resource:
    """`sample` with another value in each number, choice and flag of its spec, or else in its texts."""
    form = copy.deepcopy(sample)
    leaves = list(_leaves(sample.get("spec", {}), schema))
    set_there = {path[0] for path, _, _ in leaves}
    for name, child in schema.get("properties", {}).items():
        if name not in set_there and "default" in child and isinstance(child["default"], int | bool | str):
            leaves.append(((name,), child["default"], child))
    plain = [leaf for leaf in leaves if not isinstance(leaf[1], str) or "enum" in leaf[2]]
    texts = [leaf for leaf in leaves if leaf not in plain and leaf[1] not in names]
    for group in (plain, texts):
        for path, value, rules in group:
            for other in _others(value, rules):
                candidate = copy.deepcopy(form)
                _put(candidate.setdefault("spec", {}), path, other)
                if is_valid(candidate):
                    form = candidate
                    break
        if form != sample:
            return form
    return form


def _leaves(value: Any, schema: Mapping[str, Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any, Any]]:
    """The path, the value and the schema of each scalar in a spec."""
    if isinstance(value, dict):
        for name, item in value.items():
            child = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            yield from _leaves(item, child if isinstance(child, Mapping) else {}, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, schema.get("items", {}), (*path, index))
    elif value is not None:
        yield path, value, schema


def _others(value: Any, rules: Mapping[str, Any]) -> list[Any]:
    """Other values that may be valid where `value` is."""
    if "enum" in rules:
        return [each for each in rules["enum"] if each != value]
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1, value - 1]
        case str():
            return [f"{value}-2", f"{value}2"]
    return []


def _put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value


def reduced_form(sample: Resource, schema: Mapping[str, Any], is_valid: Callable[[Resource], bool]) -> Resource:
    """`sample` without the fields of its spec that it may lack."""
    form = copy.deepcopy(sample)
    properties = schema.get("properties", {})
    # Fields that get a default last: without any other field the spec would be empty, which may be refused.
    names = sorted(sample.get("spec", {}), key=lambda name: "default" in properties.get(name, {}))
    for name in names if schema else ():
        if name not in schema.get("required", ()):
            candidate = copy.deepcopy(form)
            del candidate["spec"][name]
            if is_valid(candidate):
                form = candidate
    return form
