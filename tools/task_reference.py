"""Task reference: writes docs/reference/tasks.md from the tasks of a rendered repository and their options.

python -m tools.task_reference
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from invoke.collection import Collection
from invoke.parser.argument import Argument
from invoke.parser.context import translate_underscores
from invoke.tasks import Task

from bonny_dev import tasks
from tools.reference import TARGET

PAGE: Final = TARGET / "tasks.md"

LEAD: Final = """\
<!-- Written by `invoke reference` from runtime/bonny_dev/tasks: edit that. -->

# Tasks

The `invoke` tasks of a rendered repository. They run in any of its folders; `invoke --help TASK` prints the same text.

A task ends with code 0 when it succeeded; with 1 when tests, checks or a program failed, when a check of `doctor`
failed, when `migrate` could not write an object, when `--from-crd` found a newer definition, when `crd-check` found a
change that breaks objects or clients, or `api-docs --check` an outdated page; and with 2 when it refused to start, for
example a misspelt task, with one sentence on stderr that names the reason and the remedy.

The generators, whose names begin with `gen-`, add files and never change an existing one. They write all missing files
or none: when a file exists with different content, they name it and write nothing. The operator discovers the added
code, so no other file has to be edited; `gen-webhook` adds a package to `pyproject.toml` where it is missing. See also
how to [add a version](../how-to/add-a-version.md), [change the stored version](../how-to/change-the-stored-version.md)
and [port a CRD](../how-to/port-a-crd.md)."""


def collection() -> Collection:
    """The tasks as the tasks.py of a rendered repository collects them."""
    found = Collection.from_module(tasks)
    found.add_collection(Collection.from_module(tasks.sandbox))
    return deepcopy(found)  # a task hands out the help of its arguments once


def page() -> str:
    """The page as Markdown."""
    found = collection()
    blocks = [LEAD]
    for name in sorted(found.task_names):
        blocks += _entry(name, found[name])
    return "\n\n".join(blocks) + "\n"


def _entry(name: str, task: Task[Any]) -> Iterator[str]:
    arguments = task.get_arguments()
    words = [_typed(argument) for argument in arguments if argument.positional]
    yield f"## {name}"
    yield inspect.cleandoc(task.__doc__ or "")
    yield f"`{' '.join(['invoke', name, *words])}`" + (", and:" if len(words) < len(arguments) else "")
    if arguments:
        rows = [f"| `{_typed(argument)}` | {argument.help or ''} |" for argument in arguments]
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows])


def _typed(argument: Argument) -> str:
    """As it is typed: `KIND`, `--version TEXT`, `--dry-run`."""
    name = translate_underscores(argument.name or "")
    if argument.positional:
        return name.upper()
    return f"--{name}" if argument.kind is bool else f"--{name} TEXT"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
