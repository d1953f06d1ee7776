"""copier beside cookiecutter and cruft: the same tree, the same bytes, the same refusals; updates keep edits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.baking import TEMPLATE, bake, uv
from tests.support.releases import CHANGED, NEW, OLD, git, releases
from tests.template.test_answers import ACCEPTED, REFUSED
from tests.template.test_cruft import CRUFT
from tests.template.test_rendering import contents
from tools import copier_questions

COPIER = "copier==9.19.1"
# All cases in one process: copier's own command would take a second for each.
TRY_EACH = """\
import json, sys, tempfile, copier
for name, text in json.load(sys.stdin):
    try:
        copier.run_copy(sys.argv[1], tempfile.mkdtemp(), data={name: text}, defaults=True, pretend=True, quiet=True)
        print(json.dumps(""))
    except ValueError as error:
        print(json.dumps(str(error)))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """copier and cruft, in an environment of their own: neither is a tool of this repository."""
    folder = tmp_path_factory.mktemp("copier")
    uv(folder, "venv", "--quiet", "--python", sys.executable, ".venv")
    uv(folder, "pip", "install", "--quiet", "--python", ".venv/bin/python", COPIER, CRUFT)
    return folder / ".venv" / "bin"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return releases(tmp_path_factory.mktemp("releases") / "template")


def run(program: Path, *words: str | Path, cwd: Path) -> str:
    settings = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "HOME": str(program.parent),
    }
    settings |= {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        [str(program), *map(str, words)], cwd=cwd, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def deliver(project: Path) -> None:
    """The command that copier prints at its end."""
    settings = {**os.environ, "PYTHONPATH": "vendor"}
    subprocess.run([sys.executable, "-B", "-m", "bonny_dev.deliver"], cwd=project, env=settings, check=True)


def test_copier_yml_is_made_of_cookiecutter_json_and_of_the_hook() -> None:
    assert copier_questions.TARGET.read_text("utf-8") == copier_questions.contents()
    modules = {each.replace("_", "-") for each in sys.stdlib_module_names if each.islower() and each[0] != "_"}
    assert modules <= set(copier_questions.taken())


def test_cookiecutter_cruft_and_copier_render_the_same_bytes(programs: Path, template: Path, tmp_path: Path) -> None:
    address = f"git+file://{template}"
    run(
        programs / "copier",
        "copy",
        "--quiet",
        "--defaults",
        "--vcs-ref",
        OLD,
        address,
        tmp_path / "copied",
        cwd=tmp_path,
    )
    run(programs / "cruft", "create", f"file://{template}", "--checkout", OLD, "--no-input", cwd=tmp_path)
    git(template, "checkout", "--quiet", OLD)
    baked = bake(tmp_path / "bake", template=template)
    deliver(tmp_path / "copied")

    by_copier, by_cruft = contents(tmp_path / "copied"), contents(tmp_path / "widgets-operator")
    assert baked.code == 0, baked.said
    assert by_copier.pop(".copier-answers.yml")
    assert by_cruft.pop(".cruft.json")
    assert by_copier == by_cruft == contents(baked.project)


# Its questions are compared with the hook's refusals in each run; this takes 6 s of CPU.
@pytest.mark.slow
def test_copier_refuses_the_same_answers_and_takes_the_same(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "template" / copier_questions.FOLDER
    folder.mkdir(parents=True)
    shutil.copy(copier_questions.TARGET, folder.parent)
    shutil.copy(TEMPLATE / copier_questions.FOLDER / "pyproject.toml", folder)
    refused = [(name, text) for name, text, _ in REFUSED if text.isascii() or text.isprintable()]
    command = [str(programs / "python"), "-c", TRY_EACH, str(folder.parent)]
    cases = json.dumps([*refused, *ACCEPTED])
    done = subprocess.run(command, input=cases, cwd=tmp_path, capture_output=True, text=True, check=True)

    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [case for case, text in zip(refused, told, strict=False) if f": {case[0]} " not in text] == []
    assert [case for case, text in zip(ACCEPTED, told[len(refused) :], strict=True) if text] == []


@pytest.mark.slow  # cruft, in test_cruft, updates in the same way
def test_an_update_keeps_edits_and_leaves_vendor_to_update_runtime(
    programs: Path, template: Path, tmp_path: Path
) -> None:
    project, address = tmp_path / "copied", f"git+file://{template}"
    copier = programs / "copier"
    run(copier, "copy", "--quiet", "--defaults", "--vcs-ref", OLD, address, project, cwd=tmp_path)
    deliver(project)
    operator = project / "src/widgets_operator/operator.py"
    operator.write_text(operator.read_text("utf-8") + "# Mine.\n", "utf-8")
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "ours")
    vendored = contents(project / "vendor")

    run(copier, "update", "--quiet", "--defaults", "--vcs-ref", NEW, cwd=project)

    changed = [line[3:] for line in git(project, "status", "--porcelain").splitlines()]
    assert sorted(changed) == [".copier-answers.yml", ".gitignore"]
    assert operator.read_text("utf-8").endswith("# Mine.\n")
    assert (project / ".gitignore").read_text("utf-8").endswith("*.log\n")
    assert contents(project / "vendor") == vendored
    command = [sys.executable, "-m", "invoke", "update-runtime", "--ref", NEW, "--from", f"file://{template}"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    assert (project / "vendor" / CHANGED).read_text("utf-8") == git(template, "show", f"{NEW}:runtime/{CHANGED}")
