"""Texts and sizes that a user chooses: none holds up the event loop, which also renews the lease."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from bonny.api import Model, Spec, Version
from bonny.client.errors import refusal, without_values
from bonny.core.objects import Cause, Failure
from bonny.core.selector import requirements_of
from bonny.errors import OptionError
from bonny.webhooks import conversion
from bonny.webhooks.conversion import CARRIED, MOST_TRIED_BYTES, Converter
from bonny.webhooks.lost import digest, restored

MIB = 2**20
PHRASE = "updates to x spec for fields other than "
ESCALATION = (
    'roles "r" is forbidden: user "u" (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n'
)


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Whether twice the size takes at most 2.5 times the CPU; what takes less than 50 ms counts as nothing.

    By the best of a few tries: other processes, caches and the garbage collector only ever add to the time.
    """

    def seconds(size: int) -> float:
        began = time.process_time()
        work(size)
        return time.process_time() - began

    of_half = min(seconds(size // 2) for _ in range(3))
    of_whole = float("inf")
    for _ in range(9):
        of_whole = min(of_whole, seconds(size))
        if of_whole <= 2.5 * of_half + 0.05:
            return True
        of_half = min(of_half, seconds(size // 2))
    return False


def filled(pattern: str, size: int) -> str:
    return (pattern * (size // len(pattern) + 1))[:size]


REFUSALS: dict[str, Callable[[int], tuple[str, tuple[Cause, ...]]]] = {
    "the value in a cause": lambda n: ("invalid", (Cause("FieldValueInvalid", "spec.note", filled(PHRASE, n)),)),
    "the value in the message": lambda n: (filled(PHRASE, n), ()),
    "a key in a cause": lambda n: ("invalid", (Cause("FieldValueInvalid", 'data["' + filled('\\"', n), "bad"),)),
    "a key in the message": lambda n: ('ConfigMap "a" is invalid: data["' + filled('\\"', n), ()),
    "many causes": lambda n: ("invalid", (Cause("FieldValueInvalid", "spec", filled(PHRASE, 4096)),) * (n // 4096)),
    "a typed patch": lambda n: (filled(".a[", n), ()),
    "a role": lambda n: (ESCALATION.format(filled('" ', n)), ()),
    "the rules of a role": lambda n: (ESCALATION.format('"g"') + filled('{Verbs:["', n), ()),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_that_repeats_megabytes_is_shortened_at_once(name: str) -> None:
    """Regression: a label of 400 KiB that a user chose took 9 s of CPU, for each try and each leader."""

    def shortened(size: int) -> str:
        message, causes = REFUSALS[name](size)
        return str(refusal(Failure(403, "Forbidden", message, causes=causes), verb="apply", resource="x"))

    assert len(shortened(MIB)) < 20_000
    assert grows_linearly(shortened, MIB)


def test_what_is_cut_off_a_path_is_not_a_part_of_a_key() -> None:
    path = 'spec.data["' + "hunter2" * 1000 + '"].value'

    failure = Failure(422, "Invalid", "invalid", causes=(Cause("FieldValueInvalid", path, "bad"),))
    assert without_values(failure).startswith("spec.data[...: Invalid; ")


def test_the_ninth_cause_is_counted_out() -> None:
    causes = tuple(Cause("FieldValueRequired", f"spec.f{number}", "Required value") for number in range(500))
    error = refusal(Failure(422, "Invalid", "invalid", causes=causes), verb="apply", resource="pods default/a")

    assert "spec.f0: Required; " in str(error)
    assert "492 more" in str(error)
    assert "spec.f8" not in str(error)


@pytest.mark.parametrize("pattern", [",a", "(", "(,", "a,(", ",(a)", " ", ")", "a in (b,c),"])
def test_a_selector_is_read_in_linear_time(pattern: str) -> None:
    """Regression: 200 KB of `,a` took 7 s."""

    def read(size: int) -> None:
        with suppress(OptionError):
            requirements_of(filled(pattern, size))

    assert grows_linearly(read, MIB // 4)


def test_commas_in_parentheses_do_not_divide_a_selector() -> None:
    assert [(each.key, each.values) for each in requirements_of("a in (b, c),d,!e,f notin (g)")] == [
        ("a", ("b", "c")),
        ("d", ()),
        ("e", ()),
        ("f", ("g",)),
    ]


class Sub(Model):
    a: int = 0
    b: int = 0


class FirstSpec(Spec):
    size: int = 1
    tags: dict[str, str] = {}


class SecondSpec(Spec):
    size: int = 1
    tags: dict[str, str] = {}
    extra: list[Sub] = []


class First(Version):
    kind = "Thing"
    version = "v1"
    spec: FirstSpec

    @classmethod
    def to_hub(cls, resource: Any) -> Any:
        return resource

    @classmethod
    def from_hub(cls, resource: Any) -> Any:
        return {**resource, "spec": {key: value for key, value in resource["spec"].items() if key != "extra"}}


class Second(Version):
    kind = "Thing"
    version = "v2"
    hub = True
    storage = True
    spec: SecondSpec


def test_forged_annotations_do_not_make_a_conversion_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: tries were counted by the size of the object before the first one was accepted: 14 s of CPU."""
    converter, tried = Converter([First, Second], "example.com"), list[int]()

    def convert(size: int) -> None:
        annotations: dict[str, str] = {}

        def carry(**loss: Any) -> None:
            annotations[f"{CARRIED}{len(annotations):06d}"] = json.dumps({"v2": loss})

        carry(path=["spec", "extra"], instead=digest([]), value=[{"a": 1}] * size)
        for number in range(450):
            carry(path=["spec", "tags", f"t{number}"], value="x")
        metadata = {"name": "x", "namespace": "default", "annotations": annotations}
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"size": 1}}
        tried.clear()
        assert converter.convert(thing, "example.com/v2")["spec"]["size"] == 1

    monkeypatch.setattr(
        conversion, "restored", lambda made, *rest: tried.append(len(json.dumps(made))) or restored(made, *rest)
    )
    convert(15_000)

    # The budget for each of at most six searches, and the one try that each may always make.
    assert sum(tried) < 6 * (MOST_TRIED_BYTES + MIB)
