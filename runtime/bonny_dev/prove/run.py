"""Run: lives through the samples of an operator, first undisturbed, then with each fault, and compares them.

All of it happens in a sandbox of its own, never in another cluster.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from bonny.errors import UsageError

from ..manifest.bundle import to_yaml
from ..project import Project
from ..sandbox import Sandbox, SandboxError
from .causes import Cause
from .findings import Finding, Report
from .fuzz import Drawn
from .life import Interrupted, Life, Reference, Setup, chapters_of, repeated
from .options import Options
from .orders import Turn, opposed, turns_of
from .permissions import Permissions
from .plans import ALL_SAMPLES, Fault, Plan, plans_for, refuse_unknown, usual
from .points import SERVICE, Chapter, Point, Sort, points_of
from .prepared import externals_of, prepared, refuse_endless
from .shrink import is_same, smallest
from .stage import Stage, staged
from .state import contrasts, differences, learned
from .upgrade import is_about_releases, upgrade
from .variants import Sample, samples_of, with_variants

# They are not about one sample of this version.
NOT_SHRUNK: Final = frozenset({Fault.UPGRADE, Fault.DOWNGRADE, Fault.PERMISSIONS})
T = TypeVar("T")
Say = Callable[[str], None]


def prove(root: Path, options: Options | None = None, *, say: Say = print, sandbox: Sandbox | None = None) -> Report:
    """Run the operator of the repository at `root` through all plans, and return the findings.

    `say` gets lines about the progress; `sandbox` is one that runs already (default: a new sandbox).
    Raises: `UsageError` when there is nothing to run; `KeyboardInterrupt`, with the report as its argument.
    """
    options = options or Options()
    project = Project.at(root)
    operator = project.load_operator()
    refuse_endless(operator)
    samples, notes = samples_of(operator, root / "samples", options.samples)
    refuse_unknown(options.only, [sample.name for sample in samples])
    externals = externals_of(root)
    with ExitStack() as stack:
        if sandbox is None:
            say("starting a sandbox ...")
            sandbox = stack.enter_context(Sandbox(progress=say))
        setup, documents = prepared(project, operator, sandbox, samples, externals=externals, seed=options.seed)
        report = Report(operator.name, options.seed, notes=notes)
        workers = 1 if setup.wide else options.lives or 2 * (os.cpu_count() or 1) + 1
        began = time.monotonic()
        try:
            with ThreadPoolExecutor(workers) as pool:
                stages: SimpleQueue[Stage] = SimpleQueue()
                try:
                    for _ in range(workers):
                        stages.put(stack.enter_context(staged(setup)))
                    run = _Run(setup, options, report, say=say, pool=pool, stages=stages)
                    run.on_a_stage(
                        lambda stage: upgrade(stage, setup, documents, only=options.only, report=report, say=say)
                    )
                    sandbox.apply(documents)
                    run.all(samples)
                    run.shrink(samples)
                finally:
                    setup.stopped.set()
        except KeyboardInterrupt:
            report.seconds = time.monotonic() - began
            report.interrupted = True
            raise KeyboardInterrupt(report) from None
        report.seconds = time.monotonic() - began
        return report


def check(root: Path, options: Options | None = None, *, sandbox: Sandbox | None = None) -> None:
    """For a test: `prove`, and fail with its report if it finds something, or if no life with a fault was run.

    Raises: `AssertionError`, `UsageError`.
    """
    report = prove(root, options, say=lambda _: None, sandbox=sandbox)
    if report.findings:
        raise AssertionError("\n".join(report.lines()))
    if not report.passed:
        raise AssertionError("no life with a fault was run: give more minutes, or other names in `only`")


class _Run:
    """One run: its stages, which take one life at a time, and what is known so far."""

    def __init__(
        self,
        setup: Setup,
        options: Options,
        report: Report,
        *,
        say: Say,
        pool: ThreadPoolExecutor,
        stages: SimpleQueue[Stage],
    ) -> None:
        self._setup, self._options, self._report, self._say, self._pool = setup, options, report, say, pool
        self._stages = stages
        self._permissions = Permissions(setup.operator)
        self._drawn = Drawn(setup, options)
        self._references: dict[str, tuple[Sample, Reference]] = {}
        self._until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")

    def shrink(self, samples: Sequence[Sample]) -> None:
        """Look for a smaller sample that shows a finding, for the first of each group."""
        report, named = self._report, {sample.name: sample for sample in samples}
        for first, *_ in report.groups():
            until = min(time.monotonic() + self._options.shrink, self._until)
            if first.plan.fault in NOT_SHRUNK or time.monotonic() >= until:
                continue
            self._say(f"looking for a smaller sample that shows {first.plan.name} ...")
            if first.plan.fault is Fault.FUZZ:
                sample = self._drawn.bare(first.plan)
                found = smallest(sample, partial(self._shows_as_object, first), until=until)
            else:
                sample = named[first.plan.sample]
                found = smallest(sample, partial(self._shows, first), until=until)
            if found is not sample:
                text = to_yaml([*found.surroundings, *found.subjects])
                report.findings[report.findings.index(first)] = replace(first, smallest=text)

    def _shows(self, finding: Finding, sample: Sample) -> bool:
        """Whether `sample` leads to `finding`, too."""
        report = Report(self._report.operator, self._report.seed)
        options = replace(self._options, only=[finding.plan.name], minutes=0)
        run = _Run(self._setup, options, report, say=lambda _: None, pool=self._pool, stages=self._stages)
        try:
            run.all([sample])
        except UsageError:  # it is not valid, or its life has no such request
            return False
        return any(is_same(each, finding) for each in report.findings)

    def _shows_as_object(self, finding: Finding, sample: Sample) -> bool:
        """Whether the subjects of `sample`, instead of those made from the schema, lead to `finding`, too."""
        known, reference = self._references[finding.plan.sample]
        form = self._drawn.formed(known, sample.subjects)
        if form is None:
            return False
        life = self.on_a_stage(lambda stage: self._drawn.live(stage, form, finding.plan, reference))
        return is_same(replace(finding, problem=_problem(life), diff=life.diff), finding)

    def all(self, samples: Sequence[Sample]) -> None:
        """All samples. Raises: `UsageError`."""
        if self._options.only and all(is_about_releases(word) for word in self._options.only):
            return
        plans, references = list[Plan](), self._references
        for sample in samples:
            found = self._reference(sample)
            if found is not None:
                known, reference, new = found
                references[sample.name] = known, reference
                plans += new
        chosen = self._chosen(plans)
        self._say(f"{len(chosen)} lives with a fault; {len(self._report.findings)} findings without one")
        random.Random(self._options.seed).shuffle(chosen)
        self._disturbed(chosen)
        if not (self._options.only or self._report.left_out or len(references) < len(samples)):
            self._judge_permissions()

    def _judge_permissions(self) -> None:
        """Report what no life of a whole run needed."""
        written, of_runtime = self._permissions.needless()
        plan = Plan(ALL_SAMPLES, Fault.PERMISSIONS)
        for sentence in written:
            self._found(Finding(plan, sentence, cause=Cause.ACCESS))
        self._report.notes += of_runtime

    def _note_permissions(self, plan: Plan, life: Life) -> None:
        for line in self._permissions.lacking(life.used):
            self._found(Finding(plan, f"the operator sends a request that is not granted: {line}", cause=Cause.ACCESS))

    def _chosen(self, plans: list[Plan]) -> list[Plan]:
        if not self._options.only:
            return plans if self._options.thorough else list(usual(plans))
        undisturbed = [Plan(name, Fault.NONE) for name in dict.fromkeys(plan.sample for plan in plans)]
        self._report.passed += [plan for plan in undisturbed if _fits(plan, self._options.only)]
        known = plans + undisturbed + [finding.plan for finding in self._report.findings]
        words = [word for word in self._options.only if not is_about_releases(word)]
        unknown = [word for word in words if not any(_fits(plan, [word]) for plan in known)]
        if unknown and not self._report.findings:
            example = f", for example {plans[0].name}" if plans else ""
            raise UsageError(f"--only {unknown[0]}: there is no such life{example}; * stands for any text")
        return [plan for plan in plans if _fits(plan, self._options.only)]

    def _reference(self, sample: Sample) -> tuple[Sample, Reference, list[Plan]] | None:
        """The two lives without a fault; None if they show that the operator does not come to rest."""
        setup, plan = self._setup, Plan(sample.name, Fault.NONE)
        try:
            known = with_variants(setup.operator, sample, setup.sandbox, "default")
        except SandboxError as error:
            raise UsageError(f"samples/{sample.name}: {error}") from error
        chapters = ", ".join(str(chapter).replace("-", " ") for chapter in chapters_of(known))
        self._say(f"{sample.name}: {chapters}; twice without a fault ...")
        objects = [Plan(sample.name, Fault.FUZZ, number) for number in range(1, self._options.fuzz + 1)]
        wanted = [each for each in objects if not self._options.only or _fits(each, self._options.only)]
        self._report.notes += self._drawn.draw(known, wanted)
        lives = list(self._pool.map(partial(self._live, known, plan), range(2)))
        for life in lives:
            life.problem = life.problem or repeated(life)
            self._note_permissions(plan, life)
        bad = next((life for life in lives if life.problem), None)
        if bad is not None:
            self._report.findings.append(Finding(plan, bad.problem, bad.diff, bad.log))
            return None
        reference, points = self._learned(plan, known, lives)
        turns = turns_of(lives)
        numbers = [number for number, each in enumerate(objects, start=1) if each in self._drawn.samples]
        return known, reference, list(plans_for(sample.name, points, chapters_of(known), turns, objects=numbers))

    def _learned(self, plan: Plan, sample: Sample, lives: list[Life]) -> tuple[Reference, list[Point]]:
        chapters = chapters_of(sample)
        one, other = lives
        nature = learned([[life.states[chapter] for chapter in chapters] for life in lives])
        names = frozenset(map(_name_in, one.sorts)) & frozenset(map(_name_in, other.sorts))
        done = [(what, _renamed(sort, names)) for what, sort in one.done]
        reference = Reference(one.states, done, nature, names)
        for chapter in chapters:
            left, right = (nature.without(life.states[chapter]) for life in lives)
            if diff := differences(left, right):
                self._found(Finding(plan, f"two lives differ in the chapter {chapter}", diff))
                break
        before = chapters[chapters.index(Chapter.DELETED) - 1]
        first, again = (nature.without(one.states[chapter]) for chapter in (before, Chapter.AGAIN))
        if diff := contrasts(first, again):
            text = "an object that is changed to a spec, and one that is created with it, end differently"
            self._found(Finding(plan, text, diff))
        for sentence in one.shown:
            self._found(Finding(plan, sentence))
        if left_over := sorted(nature.without(one.states[Chapter.DELETED])):
            around = {f"{each['kind']} {each['metadata']['name']}" for each in sample.surroundings}
            if kept := [label for label in left_over if label not in around]:
                self._report.notes.append(f"after the deletion of {sample.name} there is still {', '.join(kept)}")
        common = [points_of(_renamed(sort, names) for sort in life.sorts) for life in lives]
        return reference, [point for point in common[0] if point in set(common[1])]

    def _found(self, finding: Finding) -> None:
        self._report.findings.append(finding)
        self._say(f"found: {finding.sentence}")

    def _live(self, sample: Sample, plan: Plan, _: int) -> Life:
        return self.on_a_stage(lambda stage: stage.live(sample, plan))

    def on_a_stage(self, live: Callable[[Stage], T]) -> T:
        """Take a stage that is free, and give it back afterwards."""
        stage = self._stages.get()
        try:
            return live(stage)
        finally:
            self._stages.put(stage)

    def _one(self, plan: Plan) -> Life | None:
        """The life of a plan; None if there is no time for it."""
        if time.monotonic() > self._until:
            return None
        sample, reference = self._references[plan.sample]

        def live(stage: Stage) -> Life:
            match plan.fault:
                case Fault.FUZZ:
                    return self._drawn.live(stage, self._drawn.samples[plan], plan, reference)
                case Fault.ORDER if isinstance(plan.at, Turn):
                    return opposed(lambda turn: stage.live(sample, replace(plan, at=turn)), plan.at)
            return stage.live(sample, plan, reference)

        try:
            return self.on_a_stage(live)
        except Interrupted:
            return None

    def _disturbed(self, plans: Sequence[Plan]) -> None:
        ongoing = {self._pool.submit(self._one, plan): plan for plan in plans}
        try:
            for number, done in enumerate(as_completed(ongoing), start=1):
                self._count(ongoing[done], done.result())
                if number % 10 == 0 or number == len(plans):
                    self._say(f"{number} of {len(plans)}")
        except BaseException:
            self._setup.stopped.set()
            for each in ongoing:
                each.cancel()
            report = self._report
            begun = {*report.passed, *report.missed, *(finding.plan for finding in report.findings)}
            report.left_out = len(set(plans) - begun)
            raise

    def _count(self, plan: Plan, life: Life | None) -> None:
        if life is not None:
            self._note_permissions(plan, life)
        if life is None:
            self._report.left_out += 1
        elif life.problem:
            text = to_yaml(list(self._drawn.samples[plan].subjects)) if plan.fault is Fault.FUZZ else ""
            self._found(Finding(plan, _problem(life), life.diff, life.log, smallest=text))
        elif life.struck:
            self._report.passed.append(plan)
        else:
            self._report.missed.append(plan)


def _problem(life: Life) -> str:
    return f"{life.problem} (chapter {life.chapter})"


def _fits(plan: Plan, words: Sequence[str]) -> bool:
    return any(fnmatchcase(plan.name, word) for word in words)


def _name_in(sort: Sort) -> str:
    """The name of an object in a sort; for a call to the external service, its path."""
    _, server, _, what = sort
    words = what.split(" ")
    return what if server == SERVICE else words[1] if len(words) > 1 else ""


def _renamed(sort: Sort, names: frozenset[str]) -> Sort:
    chapter, server, verb, what = sort
    name = _name_in(sort)
    if not name or name in names:
        return sort
    return chapter, server, verb, "generated" if server == SERVICE else what.replace(f" {name}", " generated", 1)
