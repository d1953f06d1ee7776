"""Upgrade: objects of the last release under this version, and then under that release again.

The state after the upgrade is compared with that of the same object, created under this version; the state after the
way back, with that before the upgrade. Each is lived twice, so that what differs by nature is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bonny.errors import UsageError
from bonny.resource import Resource, listed

from ..sandbox import SandboxError
from .causes import Cause
from .findings import Finding, Report
from .life import Broken, Setup
from .plans import Fault, Plan
from .release import NO_TAG, last_tag, released
from .stage import Stage
from .state import State, differences, learned
from .variants import Sample, samples_of


@dataclass(frozen=True, slots=True)
class Version:
    """An operator, and the definitions and roles that it needs."""

    name: str
    setup: Setup
    documents: Sequence[Resource]


def is_about_releases(word: str) -> bool:
    """Whether a name of lives is about an upgrade or a way back, and about nothing else."""
    return word.rpartition("/")[2] in (Fault.UPGRADE, Fault.DOWNGRADE)


def plans_of(sample: str, only: Sequence[str]) -> list[Plan]:
    """The plans of a sample that `only` names; all, if it names nothing."""
    plans = [Plan(sample, fault) for fault in (Fault.UPGRADE, Fault.DOWNGRADE)]
    return [plan for plan in plans if not only or any(fnmatchcase(plan.name, word) for word in only)]


def upgrade(
    stage: Stage,
    setup: Setup,
    documents: Sequence[Resource],
    *,
    only: Sequence[str],
    report: Report,
    say: Callable[[str], None],
) -> None:
    """Live through the samples of the last release and add to `report`; a note says why there is nothing to try.

    `documents` are the definitions and roles of this version. Raises: `Interrupted`.
    """
    if only and not any(is_about_releases(word) for word in only):
        return
    tag = last_tag(setup.root)
    if not tag:
        report.notes.append(NO_TAG)
        return
    new = Version("this version", setup, documents)
    try:
        with released(setup.root, tag) as release:
            old = Version(tag, replace(setup, root=release.root, package=release.package), release.documents)
            samples, _ = samples_of(setup.operator, release.root / "samples")
            for sample in samples:
                plans = plans_of(sample.name, only)
                if not plans:
                    continue
                say(f"{sample.name}: created under {tag}, then under this version, and under {tag} again; twice ...")
                found, notes = lived(stage, sample, old, new)
                report.notes += notes
                report.passed += [plan for plan in plans if plan.fault not in found]
                for plan in (plan for plan in plans if plan.fault in found):
                    report.findings.append(found[plan.fault])
                    say(f"found: {found[plan.fault].sentence}")
    except UsageError as error:
        report.notes.append(f"no upgrade from {tag} is tried: {error}")


def lived(stage: Stage, sample: Sample, old: Version, new: Version) -> tuple[dict[Fault, Finding], list[str]]:
    """The findings of an upgrade from `old` to `new` and back, and notes. `new` is installed afterwards.

    Raises: `Interrupted`.
    """
    found: dict[Fault, Finding] = {}
    try:
        lives = [_states(stage, sample, (old, new, old), found) for _ in range(2)]
        fresh = [_states(stage, sample, (new,), found) for _ in range(2)]
    finally:
        stage.install(new.documents)
    notes = []
    for fault, states in compared(lives, fresh).items():
        if fault in found:
            continue
        diff = differences(*states)
        if fault is Fault.DOWNGRADE and (left := [line[2:] for line in diff if line.startswith("+")]):
            # The release that runs again does not know what a newer one makes.
            notes.append(f"after the way back from this version to {old.name}: {listed(left)}")
            diff = [line for line in diff if not line.startswith("+")]
        if diff:
            found[fault] = Finding(Plan(sample.name, fault), told(fault, old.name), diff)
    return found, notes


def told(fault: Fault, release: str) -> str:
    """The consequence of a difference, as the end of a sentence."""
    if fault is Fault.UPGRADE:
        return f"an object of {release} does not end as one that this version creates"
    return f"an object does not end as it was under {release} before"


def compared(lives: Sequence[Sequence[State]], fresh: Sequence[Sequence[State]]) -> Mapping[Fault, tuple[State, State]]:
    """The states to compare, without what differs by nature: the actual one and the right one, by fault.

    `lives` are two, each with the states under the old, the new and the old version, as far as it came; `fresh` are
    two objects under the new version.
    """
    reached = min(len(life) for life in lives)
    ready = min(len(life) for life in fresh)
    nature = learned([[*life[:reached], *new[:ready]] for life, new in zip(lives, fresh, strict=True)])
    states = [nature.without(state) for state in lives[0][:reached]]
    pairs = {}
    if reached > 1 and ready:
        pairs[Fault.UPGRADE] = states[1], nature.without(fresh[0][0])
    if reached > 2:
        pairs[Fault.DOWNGRADE] = states[2], states[0]
    return pairs


def _states(stage: Stage, sample: Sample, versions: Sequence[Version], found: dict[Fault, Finding]) -> list[State]:
    """The states under each version in turn; where the life cannot go on, `found` says why."""
    states = list[State]()
    with stage.history(sample) as settled:
        for version in versions:
            plan = Plan(sample.name, Fault.DOWNGRADE if len(states) > 1 else Fault.UPGRADE)
            try:
                stage.install(version.documents)
                states.append(settled(version.setup))
            except SandboxError as error:
                problem = f"{version.name} cannot be installed: {error}"
                _add(found, Finding(plan, problem, cause=Cause.DEFINITION))
                break
            except Broken as broken:
                refused = isinstance(broken.__cause__, SandboxError)
                cause = Cause.DEFINITION if refused else None
                problem = f"under {version.name}, {broken}"
                _add(found, Finding(plan, problem, log=stage.log(), cause=cause))
                break
    return states


def _add(found: dict[Fault, Finding], finding: Finding) -> None:
    """Keep the first finding of a fault; one about the definition comes before what it leads to."""
    known = found.get(finding.plan.fault)
    if known is None or (finding.cause is Cause.DEFINITION and known.cause is not Cause.DEFINITION):
        found[finding.plan.fault] = finding
