"""A repository of the time when there was one package, after its own `invoke update-runtime`, and carried over.

`one_package.patch` is what the template rendered at commit 3151128, with a kind. The update of that time replaced
vendor/bonny and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev.tasks.carry_over import carry_over
from bonny_dev.tasks.update_runtime import CHECKSUMS, PACKAGES, checksums
from tests.support.baking import TEMPLATE
from tests.support.releases import git

MISSING = "vendor/bonny_dev is missing: run `invoke update-runtime`, which adds it and edits tasks.py for it\n"
UPDATE = ("update-runtime", "--from", str(TEMPLATE))
EDITED = {
    *(".gitattributes", ".dockerignore", "Dockerfile", ".github/workflows/ci.yml", "tasks.py", "tests/conftest.py"),
    *("tests/integration/test_operator.py", "tests/integration/test_widget.py"),
    *("tests/unit/test_operator.py", "tests/unit/test_widget.py"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "widgets-operator"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "apply", str(Path(__file__).with_name("one_package.patch")))
    vendor(folder, "bonny")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "with the runtime of today")
    return folder


def vendor(root: Path, package: str) -> None:
    folder = root / "vendor" / package
    shutil.copytree(TEMPLATE / "runtime" / package, folder, ignore=shutil.ignore_patterns("__pycache__"))
    lines = [f"{digest}  {name}\n" for name, digest in checksums(folder).items()]
    (folder / CHECKSUMS).write_text("".join(lines), "utf-8")


def python(root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python as in an environment where the repository's dev packages are installed."""
    environment = {
        **{name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPYCACHEPREFIX": str(root.with_name("cache")),
        **variables,
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def invoke(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(root, "-m", "invoke", *words)


def test_the_operator_runs_and_the_tasks_are_listed(root: Path) -> None:
    ran = python(root, "-m", "widgets_operator", "version", PYTHONPATH="src:vendor")
    assert (ran.returncode, ran.stdout) == (0, "widgets-operator/0.0.0\n"), ran.stderr

    listed = invoke(root, "--list", "--list-format=flat")
    assert listed.returncode == 0, listed.stderr
    assert {"gen-controller", "test", "update-runtime", "sandbox.start"} <= set(listed.stdout.split())


@pytest.mark.parametrize(
    "command",
    [
        *("lint", "lock", "pin", "test --unit", "doctor --sandbox", "dashboards --out x", "image --push"),
        "gen-controller Widget widgets --version v2 --short-name wd --short-name wg --cluster-scoped --dry-run",
        "gen-controller Node nodes --for v1/Node --finalizer --group x.example.com",
        *("gen-task reports", "gen-reconciler Counter", "gen-scheduler cheap --dry-run"),
        "manifest --image x:1 --namespace x --out - --local --crds-only --with alerts --without pdb --without service",
        "run-local --sandbox --reload --apply-samples --as-service-account --namespace x --context y",
        *("install --image x:1 --namespace x --context y", "uninstall --wait 5 --yes", "sandbox.stop"),
        *("sandbox.start", "sandbox.fetch"),
    ],
)
def test_every_task_says_in_one_sentence_what_to_run(root: Path, command: str) -> None:
    done = invoke(root, *command.split())

    assert (done.returncode, done.stdout, done.stderr) == (2, "", MISSING)
    assert git(root, "status", "--porcelain") == ""


def test_pytest_says_so_too(root: Path) -> None:
    done = python(root, "-m", "pytest", "-p", "no:cacheprovider")

    assert done.returncode != 0
    assert f"bonny.testing is bonny_dev.testing now, and {MISSING}" in done.stdout + done.stderr


def test_one_command_carries_it_over(root: Path) -> None:
    done = invoke(root, *UPDATE)

    assert done.returncode == 0, done.stderr
    assert f"vendor/bonny and vendor/bonny_dev are 0.1.0 now, from {TEMPLATE}; before: 0.1.0\n" in done.stdout
    changed = {line[3:] for line in git(root, "status", "--porcelain").splitlines()}
    assert changed - {"pyproject.toml"} == {*EDITED, "vendor/bonny_dev/"}
    for package in PACKAGES:
        assert checksums(root / "vendor" / package) == checksums(TEMPLATE / "runtime" / package)
        assert (root / "vendor" / package / CHECKSUMS).is_file()
    for words in (("lint",), ("test", "--unit")):
        done = invoke(root, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout

    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "carried over")
    again = invoke(root, *UPDATE)
    assert (again.returncode, git(root, "status", "--porcelain")) == (0, ""), again.stderr


def test_the_recorded_template_is_cloned_and_a_ref_is_heeded(root: Path, tmp_path: Path) -> None:
    template = tmp_path / "template"
    shutil.copytree(TEMPLATE / "runtime", template / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    git(template, "init", "--quiet")
    git(template, "add", "--all")
    git(template, "commit", "--quiet", "--message", "first")
    git(template, "tag", "v0.1.0")
    (template / "runtime/bonny/mark.txt").write_text("newer\n", "utf-8")
    git(template, "add", "--all")
    git(template, "commit", "--quiet", "--message", "second")
    replaced = (root / "pyproject.toml").read_text("utf-8").replace("gh:org/bonny-template", f"file://{template}")
    (root / "pyproject.toml").write_text(replaced, "utf-8")

    done = invoke(root, "update-runtime", "--ref", "main")

    assert done.returncode == 0, done.stderr
    assert f"now, from main of file://{template}" in done.stdout
    assert (root / "vendor/bonny/mark.txt").is_file()
    assert (root / "vendor/bonny_dev/__init__.py").is_file()


@pytest.mark.parametrize(
    ("origin", "sentence"),
    [
        ("{empty}", "{empty} has no runtime/bonny_dev: name the folder or URL of a newer template by --from\n"),
        ("file://{empty}", "git clone failed (fatal: "),
        (
            "http://somebody:s3cr3t@127.0.0.1:1/template.git",
            "git clone failed (fatal: unable to access 'http://127.0.0.1",
        ),
    ],
)
def test_a_template_that_cannot_be_used_changes_nothing(root: Path, tmp_path: Path, origin: str, sentence: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    done = invoke(root, "update-runtime", "--from", origin.format(empty=empty))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(sentence.format(empty=empty))
    assert git(root, "status", "--porcelain") == ""


def test_an_unrecorded_template_is_asked_for(root: Path) -> None:
    (root / "pyproject.toml").write_text("", "utf-8")

    done = invoke(root, "update-runtime")

    assert (done.returncode, done.stderr) == (
        2,
        "the template's address is not recorded: name its folder or URL by --from\n",
    )


# --- former names, where vendor/bonny_dev is there: as cruft leaves files that only the user has ----------------------


@pytest.fixture
def with_tools(root: Path) -> Path:
    vendor(root, "bonny_dev")
    return root


def test_former_names_lead_to_the_same_modules_and_name_the_new_import(with_tools: Path) -> None:
    code = (
        "import bonny.testing.plugin, bonny.manifest.bundle, bonny.sandbox, bonny.tasks.sandbox\n"
        "import bonny_dev.testing.plugin, bonny_dev.tasks.sandbox\n"
        "from bonny.testing.faults import FaultProxy\n"
        "from bonny.testing import RunningOperator\n"
        "assert bonny.testing.plugin is bonny_dev.testing.plugin\n"
        "assert bonny.tasks.sandbox is bonny_dev.tasks.sandbox\n"
        "assert RunningOperator is bonny_dev.testing.RunningOperator\n"
        "assert bonny_dev.testing.__spec__.name == 'bonny_dev.testing'\n"
    )
    done = python(with_tools, "-W", "default", "-c", code, PYTHONPATH="vendor")

    assert done.returncode == 0, done.stderr
    assert "bonny.testing is bonny_dev.testing now: import that, or run `invoke update-runtime`" in done.stderr
    assert done.stderr.count("DeprecationWarning") == 4


def test_tests_with_former_names_pass_also_where_warnings_are_errors(with_tools: Path) -> None:
    done = python(with_tools, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "tests/unit")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_tasks_with_former_names_work_and_the_update_edits_them(with_tools: Path) -> None:
    done = invoke(with_tools, "gen-task", "stale-reports", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "+++ b/tests/unit/test_stale_reports.py" in done.stdout

    done = invoke(with_tools, *UPDATE)
    assert done.returncode == 0, done.stderr
    assert "from bonny_dev.tasks import sandbox" in (with_tools / "tasks.py").read_text("utf-8")


@pytest.mark.slow
def test_types_are_checked_with_former_names(with_tools: Path) -> None:
    done = python(with_tools, "-m", "mypy", "--cache-dir=/dev/null", "tests")

    assert done.returncode == 0, done.stdout


# --- what is edited, and what is left ---------------------------------------------------------------------------------


def test_a_missing_requirement_is_added_and_another_specifier_is_named(root: Path) -> None:
    before = (root / "pyproject.toml").read_text("utf-8")

    carried = carry_over(root, ["Kubernetes>=37,<38", "msgspec>=1", "new_package>=1,<2"])

    assert carried.texts["pyproject.toml"] == before.replace(
        "dependencies = [\n", 'dependencies = [\n    "new_package>=1,<2",\n', 1
    )
    assert carried.left == (
        "pyproject.toml: it asks for kubernetes>=37,<38, and the runtime for Kubernetes>=37,<38",
        "pyproject.toml: it asks for msgspec>=0.19,<1, and the runtime for msgspec>=1",
    )


def test_what_was_edited_too_much_is_named_and_left(root: Path) -> None:
    (root / "pyproject.toml").write_text('[project]\ndependencies = ["x"]\n', "utf-8")
    for name in (".gitattributes", ".dockerignore", "Dockerfile", ".github/workflows/ci.yml"):
        (root / name).write_text("mine\n", "utf-8")
    (root / "tests/unit/test_mine.py").write_text(
        "from bonny import (\n    Resource,  # mine\n    testing,\n)\n", "utf-8"
    )
    (root / "tests/unit/test_widget.py").write_text("from bonny import testing as kit  # noqa\n", "utf-8")

    carried = carry_over(root, ["y>=1"])

    assert set(carried.texts) == {name for name in EDITED if name.startswith("t")}
    assert carried.texts["tests/unit/test_widget.py"] == "from bonny_dev import testing as kit  # noqa\n"
    assert carried.left == ("pyproject.toml: add y>=1 to the dependencies",)


def test_line_endings_and_permissions_stay(root: Path) -> None:
    text = "from bonny import Resource, testing as kit\r\nimport bonny.testing.faults\r\n"
    (root / "tests/unit/test_widget.py").write_bytes(text.encode())
    (root / "tasks.py").chmod(0o755)

    done = invoke(root, *UPDATE)

    assert done.returncode == 0, done.stderr
    assert (root / "tests/unit/test_widget.py").read_bytes() == (
        b"from bonny import Resource\r\nfrom bonny_dev import testing as kit\r\nimport bonny_dev.testing.faults\r\n"
    )
    assert (root / "tasks.py").stat().st_mode & 0o777 == 0o755
