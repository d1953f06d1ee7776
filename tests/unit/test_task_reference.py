"""The reference of the tasks is what `invoke` offers now, and each word of it is explained."""

from __future__ import annotations

import pytest
from invoke.program import Program

from tools import task_reference

NAMES = pytest.mark.parametrize("name", sorted(task_reference.collection().task_names))


def test_the_page_is_what_the_tasks_say_now() -> None:
    assert task_reference.PAGE.read_text("utf-8") == task_reference.page(), "run `invoke reference`"


@NAMES
def test_every_task_and_every_word_of_it_is_explained(name: str) -> None:
    task = task_reference.collection()[name]

    assert task.__doc__
    assert [argument.name for argument in task.get_arguments() if not argument.help] == []


@NAMES
def test_an_option_without_a_default_takes_several_values(name: str) -> None:
    """Regression: `invoke manifest --grant-in a,b` read the letters of its value as names."""
    single = [each for each in task_reference.collection()[name].get_arguments() if each.kind is not list]

    assert [each.name for each in single if each.default is None and not each.positional] == []


@NAMES
def test_the_options_on_the_page_are_those_that_invoke_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (section,) = [part for part in task_reference.page().split("\n## ") if part.startswith(f"{name}\n")]
    words = [line.split("`")[1].split()[0] for line in section.splitlines() if line.startswith("| `")]

    Program(namespace=task_reference.collection()).run(f"invoke --help {name}", exit=False)

    said = capsys.readouterr().out
    assert f"[--core-opts] {name} " in said
    for word in words:
        assert f"--{word.lower().removeprefix('--')}" in said
