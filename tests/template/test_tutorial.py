"""The tutorial: every command is run, every file is edited, and what the page shows is what is seen."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny_dev.sandbox.binaries import find_or_build
from tests.support.controllers import controllers_are_here
from tests.template import test_readme
from tools import terminal as pseudo
from tools.tutorial import PAGE, RUNS_ON, Command, Edit, Shown, pattern, steps

# A reader types a command that looks at something when it is there.
SEEN_SECONDS = 60.0


class Reader:
    """Somebody with two terminals. `invoke run-local` goes on in the first, all else is done in the second."""

    def __init__(self, folder: Path) -> None:
        self.second = test_readme.Terminal(folder=folder, at=folder)
        self.first: pseudo.Terminal | None = None
        self._seen = 0

    def type(self, command: Command) -> None:
        if command.line.startswith(RUNS_ON):
            program, *words = shlex.split(command.line)
            path = shutil.which(program, path=self.second.env["PATH"])
            assert path is not None
            environment = {**self.second.env, "TMPDIR": "/tmp", "NO_COLOR": "1"}
            self.first = pseudo.Terminal([path, *words], cwd=self.second.at, env=environment)
            self.look(command.output)
        elif command.line.startswith(("kubectl", "grep", "invoke")):
            self._expect(command)
        else:
            for line in command.line.split(" && "):
                test_readme.carry_out(self.second, line)

    def look(self, output: str) -> None:
        """Wait until the first terminal shows `output` after what was seen there before."""
        assert self.first is not None
        wanted, ends = pattern(output), time.monotonic() + SEEN_SECONDS
        while (found := wanted.search(self.first.text, self._seen)) is None:
            assert time.monotonic() < ends, f"not seen:\n{output}\nbut:\n{self.first.text[self._seen :]}"
            time.sleep(0.05)
        self._seen = found.end()

    def end(self) -> None:
        """Press Ctrl-C in the first terminal."""
        assert self.first is not None
        self.first.press(pseudo.CTRL_C)
        assert self.first.ended() == 0, self.first.text

    def close(self) -> None:
        if self.first is not None:
            self.first.__exit__(None, None, None)

    def _expect(self, command: Command) -> None:
        ends = time.monotonic() + SEEN_SECONDS
        while True:
            done = subprocess.run(
                shlex.split(command.line),
                cwd=self.second.at,
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=test_readme.COMMAND_SECONDS,
                check=False,
            )
            if done.returncode == 0 and pattern(command.output).fullmatch(done.stdout.strip()):
                return
            told = f"{command}\nprinted\n{done.stdout}{done.stderr}"
            if not command.line.startswith("kubectl get") or time.monotonic() > ends:
                pytest.fail(told)
            time.sleep(0.2)

    def _environment(self) -> dict[str, str]:
        """With the line pasted that the first terminal shows."""
        shown = re.search(r"export KUBECONFIG=(\S+)", self.first.text) if self.first is not None else None
        return {**self.second.env, **({"KUBECONFIG": shown[1]} if shown else {})}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    find_or_build()  # before a clock runs
    person = Reader(tmp_path)
    yield person
    person.close()


@pytest.mark.server
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="the tutorial's reader has kubectl")
def test_the_tutorial_comes_out_as_it_says(reader: Reader) -> None:
    page = PAGE.read_text("utf-8")
    todo = list(steps(page if controllers_are_here() else without_controllers(page)))
    last_look = max(number for number, step in enumerate(todo) if isinstance(step, Shown))
    for number, step in enumerate(todo):
        if number == last_look:
            assert "Press Ctrl-C in the first terminal." in page
            reader.end()
        match step:
            case Command():
                reader.type(step)
            case Edit():
                step.carry_out(reader.second.at)
            case Shown(output):
                reader.look(output)
    assert sum(isinstance(step, Command) for step in todo) > 12


def without_controllers(page: str) -> str:
    """The page for a reader who leaves out `--workloads`, as it says, since kube-controller-manager is not here."""
    for section in (r"(?<=12s\n```\n).*?(?=## Watch drift repair)", r"Pods can be made .*?(?=Press Ctrl-C)"):
        page, found = re.subn(section, "", page, flags=re.DOTALL)
        assert found == 1
    for shown, instead in (
        (" --workloads --reload", " --reload"),
        ("controllers run, kubelets are simulated: a pod becomes Ready, and nothing runs in it\n", ""),
        ("3/3     3            3", "0/3     0            0"),
    ):
        assert page.count(shown) == 1
        page = page.replace(shown, instead)
    return page


def test_a_reader_without_controllers_has_the_page_without_their_steps() -> None:
    lines = [step.line for step in steps(without_controllers(PAGE.read_text("utf-8"))) if isinstance(step, Command)]
    assert "invoke run-local --sandbox --reload --apply-samples" in lines
    assert "kubectl scale deployment widget-sample --replicas 9" in lines
    assert not [line for line in lines if line.startswith(("kubectl wait", "kubectl annotate", "kubectl delete"))]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("14:16:25 applied   w  14 ms", "09:00:01 applied w 3 ms", True),
        ("NAME   AGE\nw      12s", "NAME     AGE\nw        3s", True),
        ("a\n...\nc", "a\nb\nb\nc", True),
        ("KUBECONFIG=/tmp/bonny-sandbox-6b4f/kubeconfig", "KUBECONFIG=/tmp/bonny-sandbox-0a/kubeconfig", True),
        ("objects=1 blocked=0", "objects=7 blocked=0", True),
        ('{"size":"3"}', '{"size":"4"}', False),
        ("widget-sample   0/3     0", "widget-sample   0/9     0", False),
        ("14:16:25 applied   w  14 ms", "14:16:25 unchanged w 14 ms", False),
    ],
)
def test_what_is_shown_may_differ_only_in_what_differs_each_time(shown: str, printed: str, same: bool) -> None:
    assert bool(pattern(shown).fullmatch(printed)) is same


def test_an_edit_replaces_one_class_or_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n\n\nclass A:\n    old = 1\n\n\nclass B:\n    pass\n", "utf-8")
    Edit("a.py", "class A:\n    new = 1\n").carry_out(tmp_path)
    assert file.read_text("utf-8") == "x = 1\n\n\nclass A:\n    new = 1\n\n\nclass B:\n    pass\n"
    Edit("a.py", "y = 2\n").carry_out(tmp_path)
    assert file.read_text("utf-8") == "y = 2\n"
    assert os.listdir(tmp_path) == ["a.py"]  # noqa: PTH208
