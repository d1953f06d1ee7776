"""Shrink: the smallest sample that still shows a finding, as far as there is time to look for it."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bonny.resource import Resource

from .findings import Finding
from .variants import Sample

Path = tuple[str | int, ...]


def smallest(sample: Sample, shows: Callable[[Sample], bool], *, until: float) -> Sample:
    """The smallest sample for which `shows` holds; it begins no further try after the monotonic time `until`.

    A part that is left out once stays left out, and no sample is tried twice.
    """
    tried = list[Sample]()
    while (candidate := next((each for each in smaller(sample) if each not in tried), None)) is not None:
        if time.monotonic() >= until:
            break
        tried.append(candidate)
        if shows(candidate):
            sample = candidate
    return sample


def smaller(sample: Sample) -> Iterator[Sample]:
    """Samples that lack a part of this one, the largest parts first: objects, whole specs, fields, items of lists."""
    for number in range(len(sample.surroundings)):
        yield replace(sample, surroundings=_without(sample.surroundings, number))
    for number in range(len(sample.subjects) if len(sample.subjects) > 1 else 0):
        yield replace(sample, subjects=_without(sample.subjects, number))
    for number, subject in enumerate(sample.subjects):
        for form in _reduced(subject):
            subjects = [*sample.subjects]
            subjects[number] = form
            yield replace(sample, subjects=subjects)


def is_same(one: Finding, other: Finding) -> bool:
    """Whether two findings are about the same life, with the same consequence for the same object."""
    return one.plan == other.plan and _consequence(one) == _consequence(other)


def _consequence(finding: Finding) -> tuple[str, str]:
    first = finding.diff[0].partition(":")[0] if finding.diff else ""
    return re.sub(r"\d+", "", finding.problem), first


def _without(objects: Sequence[Resource], number: int) -> list[Resource]:
    return [each for index, each in enumerate(objects) if index != number]


def _reduced(subject: Resource) -> Iterator[Resource]:
    if subject.get("spec"):
        yield {**subject, "spec": {}}
    for path in sorted(_paths(subject.get("spec", {})), key=len):
        form = copy.deepcopy(subject)
        inner = form["spec"]
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]
        yield form


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all fields and items in a spec."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield (*path, step)
        yield from _paths(item, (*path, step))
