"""READMEs: every command in them is run, in order, and every link in the documentation leads somewhere.

A command that cannot be run as it stands has a rule in `RULES`, with the reason; one that has neither fails.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from bonny_dev.sandbox.binaries import find_or_build
from bonny_dev.sandbox.guard import Guard
from tests.support.baking import TEMPLATE, bake, uv
from tools.lines import BUDGETS

README = TEMPLATE / "README.md"
SLUG = "widgets-operator"
# The longest is `invoke test`: it starts an API server and runs the generated tests.
COMMAND_SECONDS = 300.0
WATCHES_SECONDS = 60.0
STOP_SECONDS = 5.0


class Block(NamedTuple):
    """A fenced block of a Markdown file."""

    language: str
    text: str


def blocks(text: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def commands(text: str) -> list[str]:
    """The commands of all console blocks, without comments; those chained by && one by one."""
    lines = [line for block in blocks(text) if block.language == "console" for line in block.text.splitlines()]
    bare = [re.sub(r"\s+# .*", "", line.removeprefix("$ ")).strip() for line in lines if line.strip()]
    return [command for line in bare for command in line.split(" && ")]


@dataclass(kw_only=True)
class Terminal:
    """A person at work: the folder they are in. `folder` is where they began; `env` has their environment's tools."""

    folder: Path
    at: Path
    ran: list[str] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        foreign = ("PYTHONPATH", "VIRTUAL_ENV", "UV_PYTHON", "KUBECONFIG")
        kept = {
            name: value for name, value in os.environ.items() if name not in foreign and not name.startswith("BONNY_")
        }
        return {**kept, "PATH": os.pathsep.join([str(self.at / ".venv" / "bin"), os.environ["PATH"]])}

    def run(self, command: str) -> str:
        """Run `command` to its end and return what it printed. Fails unless its exit code is 0."""
        done = subprocess.run(
            shlex.split(command),
            cwd=self.at,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


# --- rules ------------------------------------------------------------------------------------------------------------


def render_here(terminal: Terminal, command: str) -> None:
    name = re.fullmatch(r"(?:uvx )?cookiecutter gh:\w+/([\w-]+)", command)
    assert name is not None, command
    project = bake(terminal.folder / "baking").project
    shutil.move(project, terminal.at / project.name)


def change_folder(terminal: Terminal, command: str) -> None:
    terminal.at = terminal.at / command.removeprefix("cd ")
    assert terminal.at.is_dir(), terminal.at


def make_environment(terminal: Terminal, _: str) -> None:
    uv(terminal.at, "venv", "--quiet", "--python", sys.executable, ".venv")


def activate(terminal: Terminal, _: str) -> None:
    assert (terminal.at / ".venv" / "bin" / "activate").is_file()


def install_by_uv(terminal: Terminal, command: str) -> None:
    if not (terminal.at / ".venv").exists():  # a README that leaves the choice of an environment to its reader
        make_environment(terminal, command)
    uv(terminal.at, *shlex.split(command), "--quiet", "--python", ".venv/bin/python")


def sync(terminal: Terminal, _: str) -> None:
    uv(terminal.at, "sync", "--quiet", "--python", sys.executable)


def with_an_author(terminal: Terminal, command: str) -> None:
    terminal.run(command.replace("git ", "git -c user.name=Ann -c user.email=ann@example.com ", 1))


def is_ours(_: Terminal, command: str) -> None:
    assert version(command.removeprefix("pip install "))


def watch_and_interrupt(terminal: Terminal, command: str) -> None:
    with Guard(terminal.folder / "running") as guard:
        log = terminal.folder / "run-local.log"
        program, *arguments = shlex.split(command)
        found = shutil.which(program, path=terminal.env["PATH"])
        assert found is not None
        process = guard.popen([found, *arguments], log_file=log, cwd=terminal.at, env=terminal.env)
        until(lambda: "watching" in log.read_text("utf-8") and " started " in log.read_text("utf-8"), process, log)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        code = process.wait(STOP_SECONDS)
        assert (code, "stopped" in log.read_text("utf-8")) == (0, True), log.read_text("utf-8")
        assert time.monotonic() - began < STOP_SECONDS
        if "--sandbox" in arguments:  # as with --reload, which reads the kubeconfig of the sandbox from a variable
            assert "of context 'sandbox' of " in log.read_text("utf-8")


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + WATCHES_SECONDS
    while not holds():
        assert process.poll() is None, f"it ended at once\n{log.read_text('utf-8')}"
        assert time.monotonic() < ends, f"still not so after {WATCHES_SECONDS} s\n{log.read_text('utf-8')}"
        time.sleep(0.05)


def target_and_task_exist(_: Terminal, command: str) -> None:
    target = command.removeprefix("make ")
    makefile = (TEMPLATE / "Makefile").read_text("utf-8")
    assert re.search(rf"^(?:[\w-]+ )*{target}(?: [\w-]+)*:", makefile, re.MULTILINE), f"no target {target}"
    listed = subprocess.run(
        [sys.executable, "-m", "invoke", "--list"], cwd=TEMPLATE, capture_output=True, text=True, check=True
    )
    assert re.search(rf"^  {target}\b", listed.stdout, re.MULTILINE), f"no task {target}"


def file_is_a_manifest(terminal: Terminal, command: str) -> None:
    name = command.rpartition(" ")[2]
    documents = list(yaml.safe_load_all((terminal.at / name).read_text("utf-8")))
    assert {"Namespace", "CustomResourceDefinition", "ServiceAccount", "Deployment"} <= {
        each["kind"] for each in documents
    }


def command_is_printed(terminal: Terminal, command: str) -> None:
    assert "docker buildx build" in terminal.run(command.replace("invoke ", "invoke --dry "))


def task_has_these_options(terminal: Terminal, command: str) -> None:
    _, task, *options = command.split()
    helped = terminal.run(f"invoke --help {task}")
    assert all(option in helped for option in options)


class Rule(NamedTuple):
    """What is done for the commands that `pattern` matches, and why they are not run as they stand."""

    pattern: str
    instead: Callable[[Terminal, str], Any]
    reason: str


RULES = (
    Rule(r"cd [\w-]+", change_folder, "a shell's own command"),
    Rule(r"python3 -m venv \.venv", make_environment, "the Python of the tests, and by uv in a moment"),
    Rule(r"\. \.venv/bin/activate", activate, "a shell's own; `Terminal` looks into .venv first"),
    Rule(
        r"(uvx )?cookiecutter gh:.*",
        render_here,
        "no network: this very folder is the template, and nobody answers the questions",
    ),
    Rule(
        r"pip install -e '\.\[dev\]'", install_by_uv, "uv does the same into an environment of the project in seconds"
    ),
    Rule(r"uv sync", sync, "with the Python of the tests"),
    Rule(r"git (init|add|commit|tag) ?.*", with_an_author, "git asks for the name of its user"),
    Rule(r"pip install cookiecutter", is_ours, "the test's own environment has it"),
    Rule(
        r"invoke run-local --sandbox --apply-samples",
        watch_and_interrupt,
        "it runs until Ctrl-C, which is sent once it watches",
    ),
    Rule(r"make demo", target_and_task_exist, "tests/integration/test_demo.py runs it"),
    Rule(r"make (check|test|test-all|lint)", target_and_task_exist, "they are what runs this test"),
    Rule(r"make docs", target_and_task_exist, "tests/template/test_website.py builds the site"),
    Rule(
        r"make (bench(-check|-core|-pipeline|-scale|-scheduler|-webhooks)?|soak)",
        target_and_task_exist,
        "they run for minutes",
    ),
    Rule(r"kubectl apply --server-side -f manifest\.yaml", file_is_a_manifest, "no kubectl; the demo applies the same"),
    Rule(r"invoke image --push", command_is_printed, "no Docker"),
    Rule(r"invoke (un)?install( --yes)?", task_has_these_options, "tests/integration/test_deploy.py runs them"),
)


def carry_out(terminal: Terminal, command: str) -> None:
    rule = next((rule for rule in RULES if re.fullmatch(rule.pattern, command)), None)
    if rule is not None:
        rule.instead(terminal, command)
    elif command.startswith("invoke "):
        terminal.run(command)
    else:
        pytest.fail(f"`{command}` is not run by a test: give it a rule in tests/template/test_readme.py")
    terminal.ran.append(command)


@pytest.fixture(scope="module")
def binaries() -> dict[str, Path]:
    """Found or built before a clock runs: on a fresh machine that takes minutes."""
    return find_or_build()


# --- commands ---------------------------------------------------------------------------------------------------------


# The generated tests and checks of the same Widget, and more: test_rendered_project runs both tasks.
RUN_ELSEWHERE = ("invoke test", "invoke lint")


@pytest.fixture(scope="module")
def after_readme(binaries: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A terminal in which every command of README.md was carried out."""
    folder = tmp_path_factory.mktemp("readme")
    home = folder / "home"
    home.mkdir()
    terminal = Terminal(folder=folder, at=home)
    for command in commands(README.read_text("utf-8")):
        if command in RUN_ELSEWHERE:
            task_has_these_options(terminal, command)
        else:
            carry_out(terminal, command)
    return terminal


@pytest.mark.server
def test_every_command_of_the_readme_works(after_readme: Terminal) -> None:
    assert after_readme.at.name == SLUG
    assert "invoke run-local --sandbox --apply-samples" in after_readme.ran


@pytest.mark.server
def test_the_controller_in_the_readme_is_what_gen_controller_writes(after_readme: Terminal) -> None:
    (shown,) = [block.text for block in blocks(README.read_text("utf-8")) if block.language == "python"]

    written = (after_readme.at / "src/widgets_operator/controllers/widget.py").read_text("utf-8")
    assert written.startswith(shown)
    assert "def settings_for(" in written


@pytest.mark.server
def test_every_command_of_the_rendered_readme_works(binaries: dict[str, Path], tmp_path: Path) -> None:
    project = bake(tmp_path / "baking").project
    terminal = Terminal(folder=tmp_path, at=project)

    for command in commands((project / "README.md").read_text("utf-8")):
        carry_out(terminal, command)

    assert "invoke run-local --sandbox --apply-samples" in terminal.ran


@pytest.mark.parametrize(
    "command", ["helm install widgets", "make release", "kubectl delete namespace default", "rm -rf build"]
)
def test_a_command_without_a_rule_fails(command: str, tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="is not run by a test"):
        carry_out(Terminal(folder=tmp_path, at=tmp_path), command)


def test_every_block_says_what_it_is_so_that_no_command_hides_in_one() -> None:
    for path in documents():
        allowed = {"console", "python", "mermaid", "text", "toml", "yaml"}
        if path.name.startswith("port-"):  # the code of the other side, which tests of these pages run where it runs
            allowed |= {"bash", "elixir", "go", "helm", "py"}
        assert {block.language for block in blocks(path.read_text("utf-8"))} <= allowed, path


def test_the_commands_of_contributing_have_rules() -> None:
    for command in commands((TEMPLATE / "CONTRIBUTING.md").read_text("utf-8")):
        assert any(re.fullmatch(rule.pattern, command) for rule in RULES), command


def test_every_rule_is_of_use() -> None:
    texts = [path.read_text("utf-8") for path in documents()]
    used = [command for text in texts for command in commands(text)]
    unused = [rule.pattern for rule in RULES if not any(re.fullmatch(rule.pattern, command) for command in used)]
    assert unused == []


def test_every_task_that_a_readme_names_exists(after_readme_tasks: str) -> None:
    for path in (README, TEMPLATE / "<<cookiecutter.operator_slug>>" / "README.md"):
        for task in re.findall(r"`invoke ([a-z][\w.-]+)", path.read_text("utf-8")):
            assert f"  {task} " in after_readme_tasks, f"{path.name} names `invoke {task}`"


@pytest.fixture(scope="module")
def after_readme_tasks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `invoke --list` says in a rendered project, before anything but invoke is installed."""
    project = bake(tmp_path_factory.mktemp("tasks") / "baking").project
    done = subprocess.run(
        [sys.executable, "-m", "invoke", "--list"], cwd=project, capture_output=True, text=True, check=True
    )
    return done.stdout


# --- documents -------------------------------------------------------------------------------------------------------


def documents() -> list[Path]:
    """Every Markdown file of this repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"],
        cwd=TEMPLATE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [TEMPLATE / name for name in listed.split("\0") if name]


def test_every_decision_is_in_the_index_and_every_reference_leads_to_one() -> None:
    folder = TEMPLATE / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("0*.md"))
    listed = re.findall(r"\((0\d{3}-[\w-]+\.md)\)", (folder / "README.md").read_text("utf-8"))

    numbers = {name[:4] for name in files}
    sources = [TEMPLATE / "pyproject.toml", *(TEMPLATE / "runtime").rglob("*.py"), *(TEMPLATE / "tools").glob("*.py")]
    referred = {number for path in sources for number in re.findall(r"docs/decisions/(\d{4})", path.read_text("utf-8"))}
    assert listed == files
    assert len(numbers) == len(files)
    assert referred <= numbers


def test_the_rooms_of_the_architecture_page_are_the_layers_that_lint_imports_checks() -> None:
    """The same rooms in the same order, so that the page cannot rot."""
    contracts = tomllib.loads((TEMPLATE / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"\w+", line) for line in contracts[0]["layers"]]
    page = (TEMPLATE / "docs" / "architecture.md").read_text("utf-8").partition("\n## Rooms\n")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in page.splitlines() if line.startswith("| `")]
    assert rows == layers


def test_the_architecture_page_names_each_room_of_the_developer_tools_and_no_other() -> None:
    page = (TEMPLATE / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`(\w+)`", page.partition("\nThe rooms of `bonny_dev`")[2].partition("\n## ")[0])
    found = {path.stem for path in (TEMPLATE / "runtime" / "bonny_dev").iterdir() if path.suffix in ("", ".py")}
    assert sorted(set(named) - {"invoke", "vendor"}) == sorted(found - {"__init__", "__pycache__", "LICENSE", "py"})


def test_the_line_budgets_of_the_architecture_page_are_those_that_are_checked() -> None:
    text = (TEMPLATE / "docs" / "architecture.md").read_text("utf-8").partition("\n## Line budgets\n")[2]

    assert re.findall(r"\| ([\d,]+) \|", text) == [f"{budget:,}" for budget in BUDGETS.values()]


def test_our_row_of_the_comparison_by_lines_is_the_budget() -> None:
    page = (TEMPLATE / "docs" / "comparison.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]*, at most \| this one \| ([\d,]+) \|", page, re.MULTILINE)
    assert rows == [f"{BUDGETS['code lines']:,}"]


def test_every_test_that_the_reliability_page_names_exists() -> None:
    page = (TEMPLATE / "docs" / "reliability.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = "".join(path.read_text("utf-8") for path in (TEMPLATE / "tests").rglob("test_*.py"))
    assert named
    assert {name for name in named if f"def {name}(" not in sources} == set()
    catalogue = "".join(path.read_text("utf-8") for path in (TEMPLATE / "tests" / "faults").glob("test_*.py"))
    rows = re.findall(r"def (test_[a-z]\d+_\w+)\(", catalogue)
    assert rows
    assert set(rows) <= named
