"""Fuzz: lives of objects that are made from the schema: changed to the sample and back, and freed of fields.

Nothing fails in these lives. The end state of an object is compared with that of a new object with the same spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bonny.operator import Operator
from bonny.resource import Resource, listed

from ..install import read_documents
from ..sandbox.admin import Admin
from .life import Life, Reference, Setup, chapters_of, repeated
from .options import Options
from .plans import Plan
from .points import Chapter
from .stage import Stage
from .state import Nature, State, Told, contrasts, learned
from .values import Values
from .variants import Sample, placed, reduced_form, schema_of, would_be_valid

# For each object; the API server may refuse a value that a schema alone allows.
TRIES: Final = 12
# No operator handles the objects there.
IN: Final = "default"
CHANGED_BACK: Final = Told("a change to the sample and back", "the creation", ("", " with this spec"))


@dataclass(slots=True)
class Judged:
    """The problem of a life, as the end of a sentence; empty if there is none."""

    problem: str = ""
    diff: Sequence[str] = ()
    chapter: Chapter = Chapter.CREATED


def drawn(operator: Operator, sample: Sample, admin: Admin, namespace: str, *, seed: int, number: int) -> Sample | None:
    """The sample of the life `number`; None when the API server refused all tries. No operator may run."""
    schemas = [schema_of(operator, each) for each in sample.subjects]
    for attempt in range(TRIES):
        values = Values(f"{seed}/{sample.name}", number, keep=attempt / TRIES)
        subjects = [
            {**each, "spec": values.of(schema, each.get("spec", {}))} if schema else each
            for each, schema in zip(sample.subjects, schemas, strict=True)
        ]
        if subjects != list(sample.subjects):
            found = formed(operator, sample, subjects, admin, namespace)
            if found is not None:
                return found
    return None


def formed(
    operator: Operator, sample: Sample, subjects: Sequence[Resource], admin: Admin, namespace: str
) -> Sample | None:
    """`sample` with other `subjects`: they are changed to the subjects of `sample`, back, and freed of optional fields.

    Steps that the API server refuses are left out. None when it refuses the subjects themselves. No operator may run.
    """

    def are_valid(forms: Iterable[Resource]) -> bool:
        return all(would_be_valid(admin, placed(operator, each, namespace)) for each in forms)

    def store(forms: Iterable[Resource]) -> None:
        for each in forms:
            admin.apply(placed(operator, each, namespace))

    if not are_valid(subjects):
        return None
    changed, back, reduced = list[Resource](), list[Resource](), list[Resource]()
    try:
        store(subjects)
        if are_valid(sample.subjects):
            changed = list(sample.subjects)
            store(changed)
            back = list(subjects) if are_valid(subjects) else []
            store(back)
        for each in back or changed or subjects:
            reduced.append(reduced_form(each, schema_of(operator, each), lambda form: are_valid([form])))
    finally:
        for each in subjects:
            admin.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], namespace=namespace)
    is_less = reduced != list(back or changed or subjects)
    return replace(sample, subjects=list(subjects), changed=changed, back=back, reduced=reduced if is_less else ())


def judged(sample: Sample, lives: Sequence[Life], reference: Reference) -> Judged:
    """The problem of the first of one or two lives of `sample`; two lives show the differences by nature."""
    life = lives[0]
    if problem := life.problem or repeated(life):
        return Judged(problem, life.diff, life.chapter)
    chapters = chapters_of(sample)
    nature = reference.nature
    whole = [each for each in lives if all(chapter in each.states for chapter in chapters)]
    if len(whole) > 1:
        again = learned([[each.states[chapter] for chapter in chapters] for each in whole])
        nature = Nature(nature.names | again.names, nature.generated | again.generated, nature.fields | again.fields)
    states = {chapter: nature.without(state) for chapter, state in life.states.items()}
    if Chapter.CHANGED in states:
        diff = contrasts(states[Chapter.CHANGED], nature.without(reference.states[Chapter.CREATED]))
        if diff:
            return Judged(_told(diff, states[Chapter.CHANGED], "an object that is changed to the sample"), diff)
    if Chapter.BACK in states and (diff := contrasts(states[Chapter.BACK], states[Chapter.CREATED], CHANGED_BACK)):
        return Judged(_told(diff, states[Chapter.BACK], "an object that is changed and changed back"), diff)
    before = chapters[chapters.index(Chapter.DELETED) - 1]
    if diff := contrasts(states[before], states[Chapter.AGAIN]):
        return Judged(_told(diff, states[before], "an object that is changed"), diff, Chapter.AGAIN)
    known = {label.partition(" ")[0] for label in reference.states[Chapter.DELETED]}
    if left := [label for label in states[Chapter.DELETED] if label.partition(" ")[0] not in known]:
        return Judged("something is left after the deletion", [f"+ {label}" for label in left], Chapter.DELETED)
    return Judged(life.shown[0], life.shown[1:]) if life.shown else Judged()


def _told(diff: Sequence[str], state: State, who: str) -> str:
    """A difference in a sentence; a condition Ready makes it worse."""
    is_ready = any(fields.get("status.conditions[Ready].status") == "True" for fields in state.values())
    if is_ready and any(not line.partition(": ")[2].startswith("status") for line in diff):
        return f"{who} is Ready, and ends otherwise than a new one with the same spec"
    return f"{who} ends otherwise than a new one with the same spec"


class Drawn:
    """The objects of a run that are made from the schema, and their lives."""

    def __init__(self, setup: Setup, options: Options) -> None:
        self._setup, self._options = setup, options
        self.samples: dict[Plan, Sample] = {}

    def draw(self, sample: Sample, plans: Sequence[Plan]) -> list[str]:
        """Make the objects of these plans. No operator may run.

        Returns: a note if the API server refused some. Raises: `UsageError` for a bad form in the options.
        """
        if not any(schema_of(self._setup.operator, each) for each in sample.subjects):
            return []
        given = self._options.forms.get(sample.name)
        subjects = _replaced(sample, read_documents(f"forms of {sample.name}", given)) if given else None
        for plan in plans:
            if subjects is not None:
                found = self.formed(sample, subjects)
            else:
                number = plan.at if isinstance(plan.at, int) else 0
                setup = self._setup
                found = drawn(setup.operator, sample, setup.sandbox, IN, seed=self._options.seed, number=number)
            if found is not None:
                self.samples[plan] = found
        refused = [plan.name for plan in plans if plan not in self.samples]
        return [f"the API server refused all objects made from the schema for {listed(refused)}"] if refused else []

    def formed(self, sample: Sample, subjects: Sequence[Resource]) -> Sample | None:
        """See `formed`."""
        return formed(self._setup.operator, sample, _replaced(sample, subjects), self._setup.sandbox, IN)

    def bare(self, plan: Plan) -> Sample:
        """The objects of a plan alone, to be made smaller."""
        return replace(self.samples[plan], surroundings=(), changed=(), back=(), reduced=())

    def live(self, stage: Stage, sample: Sample, plan: Plan, reference: Reference) -> Life:
        """The life of a plan, with its problem. A second life confirms it, and shows the differences by nature."""
        life = stage.live(sample, plan)
        found = judged(sample, [life], reference)
        if found.problem:
            again = stage.live(sample, plan)
            found = judged(sample, [life, again], reference)
            if not judged(sample, [again, life], reference).problem:
                found = Judged()
        life.problem, life.diff, life.chapter = found.problem, list(found.diff), found.chapter
        return life


def _replaced(sample: Sample, subjects: Iterable[Resource]) -> list[Resource]:
    """The subjects of `sample`, of which some have another form."""
    forms = {(each["kind"], each["metadata"]["name"]): each for each in subjects}
    return [forms.get((each["kind"], each["metadata"]["name"]), each) for each in sample.subjects]
