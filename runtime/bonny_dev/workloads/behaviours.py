"""Behaviours: what a simulated pod or claim does instead of working, as an annotation or a rule asks for it.

    metadata.annotations: {"bonny.dev/simulate": "not-ready=20"}

A rule does the same for all pods or claims of a namespace whose names match a pattern, the annotation has priority.
Standard library only: `Sandbox` uses this module, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from bonny.errors import UsageError

ANNOTATION: Final = "bonny.dev/simulate"
# The rules are in a ConfigMap: kept by the API server, and removed with the sandbox.
RULES_NAMESPACE: Final = "kube-system"
RULES_NAME: Final = "bonny-simulate"
RULES_KEY: Final = "rules"
# More than a day is a misspelt number.
MOST: Final = 86_400


class Simulate(StrEnum):
    """The behaviours. A number limits them: times for `crash`, seconds from the start of the pod for the others."""

    NOT_READY = "not-ready"
    """The containers run, and the pod is not Ready."""

    IMAGE_PULL_ERROR = "image-pull-error"
    """The pod stays Pending, its containers wait with ImagePullBackOff."""

    CRASH = "crash"
    """Containers exit with code 1: by `restartPolicy`, the pod is Failed, or restarts them (CrashLoopBackOff)."""

    EVICT = "evict"
    """The pod is Failed with reason Evicted; a number of seconds delays that."""

    HANG = "hang"
    """A pod that would complete, as a Job's does, goes on for ever, or for so many seconds."""

    PENDING = "pending"
    """A pod gets no node, or a claim no volume; the seconds count from the creation."""


OF_PODS: Final = tuple(Simulate)
OF_CLAIMS: Final = (Simulate.PENDING,)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One behaviour; `limit` is None for ever."""

    simulate: Simulate
    limit: int | None = None

    def is_over(self, seconds: float) -> bool:
        """Whether the limit in seconds is reached."""
        return self.limit is not None and seconds >= self.limit


def parse(text: str, *, allowed: Iterable[Simulate] = OF_PODS) -> Behaviour:
    """The behaviour that `text` names. Raises: `UsageError` with the allowed ones, for any other text."""
    name, equals, number = text.partition("=")
    names = [str(each) for each in allowed]
    if name not in names:
        raise UsageError(
            f"cannot simulate {text[:60]!r}: use {', '.join(names)}; a number limits it, as in {names[0]}=5"
        )
    if not equals:
        return Behaviour(Simulate(name))
    if not (number.isascii() and number.isdigit() and len(number) < 6 and 0 < int(number) <= MOST):
        raise UsageError(f"cannot simulate {text[:60]!r}: write a whole number from 1 to {MOST}, as in {name}=5")
    return Behaviour(Simulate(name), int(number))


@dataclass(frozen=True, slots=True)
class Rule:
    """A behaviour for all objects of a namespace whose names match."""

    resource: str
    """`pods` or `persistentvolumeclaims`."""

    namespace: str
    name: str
    """A name, with `*`, `?` and `[]` as in file names."""

    behaviour: str


def encode(rules: Iterable[Rule]) -> str:
    """The content of the ConfigMap."""
    return json.dumps([asdict(rule) for rule in rules])


def decode(config_map: Mapping[str, Any]) -> list[Rule]:
    """The rules of the ConfigMap, the newest last; an empty object has none."""
    return [Rule(**each) for each in json.loads((config_map.get("data") or {}).get(RULES_KEY, "[]"))]


def asked_for(resource: str, metadata: Mapping[str, Any], rules: Iterable[Rule]) -> str:
    """The behaviour in the annotation of an object, else in the last rule that fits; empty for none."""
    annotation: str = (metadata.get("annotations") or {}).get(ANNOTATION, "")
    fitting = [
        rule.behaviour
        for rule in rules
        if (rule.resource, rule.namespace) == (resource, metadata["namespace"])
        and fnmatchcase(metadata["name"], rule.name)
    ]
    return annotation or (fitting[-1] if fitting else "")
