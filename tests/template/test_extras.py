"""Extras: a repository carries what it uses: adding, removing, what is refused, and each set at work.

Three kinds of sets are tested: the default one, each extra alone, all together.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from bonny_dev import wheel
from tests.support.baking import install, invoke, uv
from tests.support.generating import run_task, state
from tests.template.conftest import copied

LISTED = json.loads(wheel.sources()["extras.json"])
WITHOUT = "without any"
ALL = "all"
LABELED = "BONNY_WATCH_NAMESPACES_LABELED"
USES = {
    "scheduler": """
from bonny.scheduler import Scheduler


class CheapNode(Scheduler):
    name = "cheap-node"
""",
    "filters": """
from bonny.filters import fits, least_allocated
from bonny.scheduler import Choice, Nodes, PodView, Scheduler


class EmptyNode(Scheduler):
    name = "empty-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes.fitting(pod).best(least_allocated)
""",
    "webhooks": """
from typing import Any

from bonny import Kind
from bonny.webhooks import Admission, Review


class PodAdmission(Admission[Any]):
    resource = Kind("v1", "Pod")

    def validate(self, review: Review[Any]) -> None:
        review.warn("hello")
""",
    "cron": """
from bonny import PeriodicTask, TaskRun


async def sweep(run: TaskRun) -> None:
    return None


nightly = PeriodicTask("nightly", sweep, cron="30 2 * * *")
""",
}


def use(project: Path, extra: str) -> None:
    """A module of the operator that uses the extra."""
    module_of(project, extra).write_text(f'"""Uses {extra}."""\n{USES[extra]}', "utf-8")


def module_of(project: Path, extra: str) -> Path:
    return project / "src/widgets_operator/controllers" / f"use_{extra}.py"


def uses_what_it_lists(project: Path) -> bool:
    """Whether it has no extra, or a module that uses one."""
    return not listed_in(project) or any(module_of(project, name).exists() for name in USES)


def listed_in(project: Path) -> list[str]:
    extras: list[str] = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["tool"]["bonny"]["extras"]
    return extras


def folders(project: Path) -> set[str]:
    """The folders of extras in vendor/bonny."""
    known = {folder for extra in LISTED.values() for folder in extra.get("folders", ())}
    return {path.name for path in (project / "vendor/bonny").iterdir() if path.is_dir()} & known


def run(project: Path, *command: str, tools: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python in `project` with nothing but its own runtime; and with the developer tools of this repository."""
    folders = (project / "src", project / "vendor", *([Path(wheel.__file__).parents[1]] if tools else []))
    path = os.pathsep.join(map(str, folders))
    return subprocess.run(
        [sys.executable, "-P", *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def installed_once(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an environment, which has the packages of all extras."""
    project = copied(pristine, tmp_path_factory.mktemp("carrying"))
    install(project)
    uv(project, "pip", "install", "--quiet", *(text for extra in LISTED.values() for text in extra.get("packages", ())))
    return project


# The linter of imports keeps extras apart, and all of them are tried together: one alone is quick work only where a
# module of the operator uses it.
ALONE = [name if name in USES else pytest.param(name, marks=pytest.mark.slow) for name in LISTED]


@pytest.fixture(scope="module", params=[WITHOUT, *ALONE, ALL])
def carrying(request: pytest.FixtureRequest, installed_once: Path) -> Path:
    """The repository with no extra, with one, or with all."""
    project = installed_once
    for name in USES:
        module_of(project, name).unlink(missing_ok=True)
    if before := listed_in(project):
        assert run_task(project, f"extras --remove {','.join(before)}") == 0
    names = [*LISTED] if request.param == ALL else [] if request.param == WITHOUT else [request.param]
    if names:
        assert run_task(project, f"extras --add {','.join(names)}") == 0
    assert sorted(listed_in(project)) == sorted(names)
    for name in names:
        if name in USES:
            use(project, name)
    return project


# --- each set ---------------------------------------------------------------------------------------------------------


def test_a_repository_holds_the_folders_of_its_extras_and_no_others(carrying: Path) -> None:
    wanted = {folder for name in listed_in(carrying) for folder in LISTED[name].get("folders", ())}
    assert folders(carrying) == wanted
    vendored, listed = carrying / "vendor/bonny", listed_in(carrying)
    assert wheel.contents(vendored) == wheel.selected(wheel.sources(), listed)
    assert (vendored / wheel.CHECKSUMS).exists() is bool(wanted - {"scheduler"})
    for name, found in wheel.recorded(vendored).items():
        assert found == wheel.digest((vendored / name).read_bytes())


def test_lint_types_and_tests_pass_and_the_manifest_is_written(carrying: Path) -> None:
    # One process for all three: the first that fails ends it. What no module uses is nothing to lint and to test.
    is_used = uses_what_it_lists(carrying)
    done = invoke(carrying, *(("lint", "test", "--unit") if is_used else ()), "manifest", "--out", "-")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("$ mypy" in done.stdout, "\nkind: ServiceAccount\n" in done.stdout) == (is_used, True)
    assert ("WebhookConfiguration" in done.stdout) is ("webhooks" in listed_in(carrying))


def test_the_image_holds_what_the_repository_holds_and_the_operator_starts(carrying: Path, tmp_path: Path) -> None:
    known = {folder for extra in LISTED.values() for folder in extra.get("folders", ())}
    if uses_what_it_lists(carrying):  # a build takes a second, and copies vendor/, whatever is in it
        uv(carrying, "build", "--quiet", "--wheel", "--out-dir", str(tmp_path))
        (packed,) = tmp_path.glob("*.whl")
        with zipfile.ZipFile(packed) as archive:
            names = archive.namelist()
        packages = {name.split("/")[1] for name in names if re.fullmatch(r"bonny/\w+/__init__\.py", name)}
        assert packages & known == folders(carrying)
        assert not [name for name in names if name.startswith("bonny_dev/")]
    done = run(carrying, "-m", "widgets_operator", "config")
    assert "BONNY_LOG_LEVEL" in done.stdout, done.stderr
    assert ("BONNY_WEBHOOK_PORT" in done.stdout) is ("webhooks" in listed_in(carrying))


def test_the_core_names_no_extra(pristine: Path) -> None:
    """The default set without `scheduler` holds neither a folder nor an import of an extra."""
    known = {folder for extra in LISTED.values() for folder in extra.get("folders", ())}
    imports = re.compile(rf"(?:from|import) [\w.]*\b({'|'.join(sorted(known))})\b", re.MULTILINE)
    found = {
        f"{path.relative_to(pristine)}: {match[0]}"
        for path in (pristine / "vendor/bonny").rglob("*.py")
        if path.parent.name not in known and path.name != "extras.py"  # whose comment has an example
        for match in imports.finditer(path.read_text("utf-8"))
    }
    assert found == set()


def test_the_default_set_imports_only_its_own_extras(pristine: Path) -> None:
    """The scheduler is there and the filters of schedulers are not, so nothing may need them."""
    carried = {folder for name in listed_in(pristine) for folder in LISTED[name].get("folders", ())}
    known = {folder for extra in LISTED.values() for folder in extra.get("folders", ())}
    absent = known - carried
    assert (carried, folders(pristine)) == ({"scheduler"}, {"scheduler"})
    found = set()
    for path in (pristine / "vendor/bonny").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            below = {part for name in (module, *names) for part in name.split(".")} & absent
            if below and not (path.parent.name == "servers" and below == {"cron"}):  # ticks load it by an option
                found.add(f"{path.relative_to(pristine)}: {sorted(below)}")
    assert found == set()


def test_namespaces_by_labels_pass_lint_types_tests_and_the_manifest_has_their_permissions(
    installed_once: Path,
) -> None:
    project, source = installed_once, installed_once / "src/widgets_operator/operator.py"
    text = source.read_text("utf-8")
    if "namespaces" not in listed_in(project):
        assert invoke(project, "extras", "--add", "namespaces").returncode == 0
    watching = text.replace('watch="all"', 'watch=NamespaceSelector("team in (a,b),!archived")')
    importing = "from bonny import Operator, discover\n"
    before = {*project.rglob("*_counter.py")}
    assert run_task(project, "gen-reconciler MapCounter") == 0  # there must be permissions to bind
    source.write_text(
        watching.replace(importing, f"{importing}from bonny.namespaces import NamespaceSelector\n"), "utf-8"
    )
    try:
        done = invoke(project, "lint", "test", "--unit", "manifest", "--out", "-")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{LABELED}, value: 'team in (a,b),!archived'" in done.stdout
        done = invoke(project, "manifest", "--grant-in", "shop,billing", "--out", "-")
        bound = re.findall("  name: widgets-operator-in-namespace\n  namespace: (.+)", done.stdout)
        assert bound == ["shop", "billing"], done.stdout + done.stderr
        done = invoke(project, "extras", "--remove", "namespaces")
        assert (done.returncode, "is in use by src/widgets_operator/operator.py" in done.stderr) == (2, True)
        for settings, sentence in (
            ({"BONNY_WATCH_NAMESPACE": "a", LABELED: "team=b"}, "are both set: leave out one of them"),
            ({LABELED: "team in ("}, f"{LABELED} is 'team in (': use a selector of labels"),
        ):
            command = [sys.executable, "-m", "widgets_operator"]
            path = os.pathsep.join((str(project / "src"), str(project / "vendor")))
            ended = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": path, **settings}, capture_output=True, text=True, check=False
            )
            assert (ended.returncode, ended.stderr.count("\n"), sentence in ended.stderr) == (2, 1, True), ended.stderr
    finally:
        source.write_text(text, "utf-8")
        for path in {*project.rglob("*_counter.py")} - before:
            path.unlink()


# --- adding and removing ----------------------------------------------------------------------------------------------


def test_what_was_added_can_be_removed_and_leaves_nothing(project: Path) -> None:
    before = state(project)
    for name in LISTED:
        if name not in listed_in(project):
            assert run_task(project, f"extras --add {name}") == 0
            assert state(project) != before
            assert run_task(project, f"extras --remove {name}") == 0
            assert state(project) == before


def test_the_table_says_who_uses_an_extra(project: Path) -> None:
    use(project, "scheduler")
    assert run_task(project, "extras --remove fast") == 0
    said = run(project, "-m", "invoke", "extras", tools=True).stdout
    assert re.search(r"^scheduler +yes +\d+ +CheapNode$", said, re.MULTILINE)
    assert re.search(r"^fast +no +- +-$", said, re.MULTILINE)


def test_a_missing_extra_is_named_by_the_table_the_manifest_and_the_tests(project: Path) -> None:
    use(project, "webhooks")
    sentence = "needs the extra webhooks, which is not in vendor/: run `invoke extras --add webhooks`"
    for words, code in (("extras", 0), ("manifest --out -", 2), ("test --unit", 4)):
        done = run(project, "-m", "invoke", *words.split(), tools=True)
        assert done.returncode == code, done.stdout + done.stderr
        said = done.stdout + done.stderr
        if words == "extras":
            assert re.search(r"^webhooks +MISSING +\d+ +`import bonny\.webhooks`$", said, re.MULTILINE)
        else:
            assert sentence in said
        assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--add everything", "there is no extra 'everything': use "),
        ("--remove everything", "there is no extra 'everything': use "),
        ("--add cron --remove fast", "--add, --remove and --sync exclude each other: use one of them"),
        ("--sync --add cron", "--add, --remove and --sync exclude each other: use one of them"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    project: Path, words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(project)
    assert run_task(project, f"extras {words}") == 2
    said = capsys.readouterr()
    assert said.err.startswith(sentence)
    assert (said.err.count("\n"), said.out) == (1, "")
    assert state(project) == before


def test_an_extra_in_use_is_not_removed(project: Path) -> None:
    use(project, "scheduler")
    done = run(project, "-m", "invoke", "extras", "--remove", "scheduler", tools=True)
    sentence = "the extra scheduler is in use by CheapNode: remove that code first\n"
    assert (done.returncode, done.stderr) == (2, sentence)
    assert "scheduler" in folders(project)


def test_a_file_that_was_edited_is_neither_removed_nor_replaced(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = project / "vendor/bonny/scheduler/binding.py"
    edited.write_text(edited.read_text("utf-8") + "# mine\n", "utf-8")
    before = state(project)

    assert run_task(project, "extras --remove scheduler") == 2
    assert (
        "vendor/bonny/scheduler/binding.py was edited or added here, so nothing was changed" in capsys.readouterr().err
    )
    assert state(project) == before
    assert run_task(project, "extras --sync") == 0
    assert "vendor/bonny/scheduler/binding.py was edited here, and stays" in capsys.readouterr().out
    assert edited.read_text("utf-8").endswith("# mine\n")


def test_sync_makes_the_runtime_fit_the_list(project: Path) -> None:
    text = (project / "pyproject.toml").read_text("utf-8")
    (project / "pyproject.toml").write_text(text.replace('"scheduler"', '"otel"'), "utf-8")
    shutil.rmtree(project / "vendor/bonny/core")

    assert run_task(project, "extras --sync") == 0

    assert folders(project) == {"otel"}
    assert (project / "vendor/bonny/core/watch.py").is_file()
    assert 'otel = ["opentelemetry-api' in (project / "pyproject.toml").read_text("utf-8")


def test_sync_replaces_the_extras_of_the_version_before_but_no_edited_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after `cruft update`, which brings the wheel and all files but those of other extras."""
    assert run_task(project, "extras --add webhooks") == 0
    vendored, sources = project / "vendor/bonny", wheel.sources()
    older = {f"webhooks/{name}.py": b"# older\n" for name in ("admission", "answers", "removed")}
    for name, data in older.items():
        (vendored / name).write_bytes(data)
    record = {name: (vendored / name).read_bytes() for name in (*wheel.recorded(vendored), *older)}
    (vendored / wheel.CHECKSUMS).write_text(wheel.listed(record), "utf-8")
    (vendored / "webhooks/answers.py").write_bytes(b"# older, and mine\n")
    capsys.readouterr()

    assert run_task(project, "extras --sync") == 0

    sentence = "vendor/bonny/webhooks/answers.py was edited here, and stays: compare it with the new version\n"
    assert capsys.readouterr().out == f"{sentence}vendor/bonny fits pyproject.toml\n"
    goal = wheel.selected(sources, listed_in(project)) | {"webhooks/answers.py": b"# older, and mine\n"}
    assert wheel.contents(vendored) == goal


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (USES["webhooks"], "`import bonny.webhooks` needs the extra webhooks"),
        (USES["cron"], "the cron expression of task nightly needs the extra cron"),
    ],
)
def test_an_operator_that_uses_an_absent_extra_ends_with_one_sentence(project: Path, code: str, sentence: str) -> None:
    (project / "src/widgets_operator/controllers/uses.py").write_text(code, "utf-8")
    for command in (("-m", "widgets_operator"), ("-m", "widgets_operator", "version")):
        done = run(project, *command)
        assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
        assert done.stderr.startswith(f"{sentence}, which is not in vendor/: run `invoke extras --add ")


def test_a_variable_of_an_absent_extra_is_refused_with_the_command(project: Path) -> None:
    done = run(project, "-c", "import os; os.environ['BONNY_WEBHOOK_PORT'] = '1'\n"
               "from bonny.main import run; raise SystemExit(run('widgets_operator.operator'))")  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2,
        "BONNY_WEBHOOK_PORT needs the extra webhooks, which is not in vendor/: run `invoke extras --add webhooks`\n",
    )


# --- delivery without hooks -------------------------------------------------------------------------------------------


def test_a_repository_that_was_rendered_without_hooks_is_repaired_by_one_command(
    pristine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = Path(__file__).resolve().parents[2]
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"replay_dir: {tmp_path}/replay\ncookiecutters_dir: {tmp_path}/templates\n", "utf-8")
    command = ("cookiecutter", "--no-input", "--accept-hooks", "no", "--config-file", str(settings), "-o")
    subprocess.run([sys.executable, "-m", *command, str(tmp_path / "out"), str(template)], check=True)
    (project,) = (tmp_path / "out").iterdir()

    assert run_task(project, "extras") == 2
    said = capsys.readouterr().err
    assert "PYTHONPATH=vendor python -m bonny_dev.deliver" in said
    assert said.count("\n") == 1
    assert "PYTHONPATH=vendor python -m bonny_dev.deliver" in (project / "pyproject.toml").read_text("utf-8")
    environment = {**os.environ, "PYTHONPATH": "vendor", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-m", "bonny_dev.deliver"], cwd=project, env=environment, check=True)

    assert wheel.contents(project / "vendor/bonny") == wheel.contents(pristine / "vendor/bonny")
    names = [path.name for folder in (project, pristine) for path in (folder / "vendor").glob(wheel.PATTERN)]
    assert len(set(names)) == 1
