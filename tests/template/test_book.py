"""The book: its files make a working repository; each command is run, and each output is seen."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny_dev.sandbox.binaries import find_or_build
from tests.support.baking import TEMPLATE, bake
from tests.support.controllers import controllers_are_here
from tests.template.test_tutorial import Reader
from tools.tutorial import Command, Edit, steps

PAGE = TEMPLATE / "docs" / "tutorial-cronjob.md"
PACKAGE = "src/cron_operator"


def edits() -> dict[str, str]:
    return {step.path: step.text for step in steps(PAGE.read_text("utf-8")) if isinstance(step, Edit)}


def test_the_page_writes_each_file_once() -> None:
    written = [step.path for step in steps(PAGE.read_text("utf-8")) if isinstance(step, Edit)]
    assert len(written) == len(set(written)) == 8
    assert "samples/cronjob-v1.yaml" in written


async def test_the_unit_tests_of_the_page_pass_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in edits().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for folder in ("", "/api", "/api/v1", "/controllers"):
        (tmp_path / f"{PACKAGE}{folder}/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    ran = []
    for path in sorted((tmp_path / "tests" / "unit").glob("test_*.py")):
        module = types.ModuleType(f"book_{path.stem}")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(path.read_text("utf-8"), path, "exec"), vars(module))
        for name, test in list(vars(module).items()):
            if not name.startswith("test_"):
                continue
            cases = [mark.args[1] for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
            for case in cases[0] if cases else [()]:
                await test(*case)
                ran.append(name)
            assert inspect.iscoroutinefunction(test)
    for name in [name for name in sys.modules if name.startswith("cron_operator")]:
        monkeypatch.delitem(sys.modules, name)
    assert len(ran) == 10


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    find_or_build()
    person = Reader(tmp_path)
    project = bake(tmp_path / "answered", {"operator_name": "Cron Operator"}).project
    shutil.move(project, tmp_path / project.name)
    yield person
    person.close()


# It installs three times, and `invoke prove` runs for minutes.
@pytest.mark.slow
@pytest.mark.server
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="the reader has kubectl")
@pytest.mark.skipif(not controllers_are_here(), reason="the reader has kube-controller-manager")
def test_every_command_of_the_book_works_and_prints_its_output(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.template.test_readme.COMMAND_SECONDS", 1_200.0)  # `invoke prove`
    monkeypatch.setattr("tests.template.test_tutorial.SEEN_SECONDS", 150.0)  # a Job starts within a minute
    page = PAGE.read_text("utf-8")
    before, after = page.split("Press Ctrl-C in the first terminal.")
    for part in (before, after):
        for step in steps(part):
            match step:
                case Command(line) if line.startswith("cookiecutter"):
                    pass  # `reader` answered the question
                case Command():
                    reader.type(step)
                case Edit():
                    step.carry_out(reader.second.at)
        if part is before:
            reader.end()


def test_each_step_ends_with_a_commit_or_changes_nothing() -> None:
    for chapter in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        if re.search(r"^(\$ invoke gen-|```python)", chapter, re.MULTILINE) and not chapter.startswith(("4.", "5.")):
            assert "$ git commit -m" in chapter, chapter.splitlines()[0]
