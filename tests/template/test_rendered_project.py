"""The rendered project at work: installed in an environment of its own, green from the first minute."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from bonny_dev.wheel import PATTERN
from tests.support.baking import checksums, installed, invoke, uv
from tests.support.generating import changes, run_task, state
from tests.template.conftest import DEFAULT_FIRST, GENERATED

# The two differ in names, texts and CI files. Both are linted and run their unit tests in `make test`, once furnished.
DEFAULT_FURNISHED_FIRST = pytest.mark.parametrize("furnished", DEFAULT_FIRST, indirect=True)


def test_lint_and_types_of_a_fresh_project_are_green(fresh: Path) -> None:
    done = invoke(fresh, "lint")

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fresh_project_has_tests_and_they_pass(fresh: Path) -> None:
    done = invoke(fresh, "test", "--unit")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_lint_and_types_of_generated_code_are_green(furnished: Path) -> None:
    done = invoke(furnished, "lint")

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_task_keeps_the_modules_that_it_compiled(fresh: Path) -> None:
    """Regression: `invoke` keeps none, so each task took half a second longer."""
    compiled = fresh / "vendor" / "bonny" / "__pycache__"
    shutil.rmtree(compiled, ignore_errors=True)
    done = invoke(fresh, "manifest", "--out", "-")

    assert done.returncode == 0, done.stderr
    assert [*compiled.glob("operator.*.pyc")]


@DEFAULT_FURNISHED_FIRST
def test_type_checkers_know_the_defaults_of_a_generated_spec(furnished: Path, tmp_path: Path) -> None:
    """Regression: `Field(1, ...)` is no default for them, so `WidgetSpec()` lacked an argument."""
    (module,) = (furnished / "src").glob("*/api/v2alpha1/widget.py")
    name = ".".join(module.relative_to(furnished / "src").with_suffix("").parts)
    made = tmp_path / "made.py"
    made.write_text(f"from {name} import WidgetSpec\n\nsize: int = WidgetSpec().size\n", "utf-8")
    command = [furnished / ".venv" / "bin" / "python", "-m", "mypy", "--strict", made]
    done = subprocess.run(command, cwd=furnished, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@DEFAULT_FURNISHED_FIRST
def test_pyright_accepts_generated_code(furnished: Path) -> None:
    """The same as in an editor. The rendered project itself does not install pyright."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", str(furnished / ".venv" / "bin" / "python")]
    done = subprocess.run([*command, "src", "tests"], cwd=furnished, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors, 0 warnings" in done.stdout


def test_both_type_checkers_know_the_fields_of_kubernetes_kinds(fresh: Path) -> None:
    """Their types are not in vendor/bonny: they come with the developer tools."""
    module = fresh / "src" / fresh.name.replace("-", "_") / "misspelt.py"
    module.write_text(
        "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
        "    from bonny.types.apps_v1 import Deployment\n\n\ndef replicas(deployment: Deployment) -> object:\n"
        '    return deployment["spec"]["replica"]\n',
        "utf-8",
    )
    try:
        mypy = installed(fresh, "mypy")
        pyright = [sys.executable, "-m", "pyright", "--pythonpath", str(fresh / ".venv/bin/python"), str(module)]
        said = subprocess.run(pyright, cwd=fresh, capture_output=True, text=True, check=False).stdout
    finally:
        module.unlink()

    assert 'TypedDict "DeploymentSpec" has no key "replica"' in mypy.stdout
    assert '"replica" is not a defined key in "DeploymentSpec"' in said
    assert ", 0 warnings" in said


def test_generated_tests_pass(furnished: Path) -> None:
    done = invoke(furnished, "test", "--unit")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 passed" in done.stdout


def test_generating_only_added_files_and_the_same_again_changes_nothing(
    furnished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added = changes(furnished)
    # The extra `webhooks`.
    changed = {line for line in added if not line.startswith("?? ")}
    assert changed == {" M pyproject.toml"}
    before = state(furnished)
    capsys.readouterr()

    for words in GENERATED:
        assert run_task(furnished, words) == 0
        assert capsys.readouterr().out == "nothing to do: all files exist\n"

    assert (changes(furnished), state(furnished)) == (added, before)


@pytest.mark.server
def test_a_fresh_operator_runs_on_a_real_api_server(fresh: Path) -> None:
    done = invoke(fresh, "test")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


@pytest.mark.server
@DEFAULT_FURNISHED_FIRST
def test_generated_controllers_work_on_a_real_api_server_with_the_manifests_permissions(furnished: Path) -> None:
    done = invoke(furnished, "test")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "35 passed" in done.stdout


def test_a_check_that_fails_is_the_tasks_exit_code(fresh: Path) -> None:
    bad = fresh / "src" / "bad.py"
    bad.write_text("import os\n", encoding="utf-8")
    try:
        done = invoke(fresh, "lint")
    finally:
        bad.unlink()

    assert done.returncode == 1
    assert "F401" in done.stdout
    assert "$ mypy" in done.stdout  # the other checks ran all the same


def test_the_manifest_serves_every_generated_kind_and_version(furnished: Path) -> None:
    done = invoke(furnished, "manifest", "--out", "-")

    documents = list(yaml.safe_load_all(done.stdout))
    served = {
        (document["metadata"]["name"].split(".", maxsplit=1)[0], version["name"])
        for document in documents
        if document["kind"] == "CustomResourceDefinition"
        for version in document["spec"]["versions"]
        if version["served"]
    }
    assert {("widgets", "v2alpha1"), ("widgets", "v1"), ("fleets", "v1")} <= served
    assert "Deployment" in {document["kind"] for document in documents}


def test_the_manifest_is_written_beside_pyproject_from_wherever_invoke_is_called(fresh: Path) -> None:
    written = fresh / "manifest.yaml"
    try:
        done = invoke(fresh, "manifest", "--image", "registry.example.com/x:1", "--local")
        assert (done.returncode, done.stdout) == (0, "wrote manifest.yaml\n"), done.stderr
        assert "Deployment" not in {document["kind"] for document in yaml.safe_load_all(written.read_text("utf-8"))}
    finally:
        written.unlink(missing_ok=True)


def test_an_impossible_image_is_refused_in_a_sentence_and_nothing_is_written(fresh: Path) -> None:
    done = invoke(fresh, "manifest", "--image", "Not An Image")

    assert done.returncode == 2
    assert done.stderr.startswith("'Not An Image' is not a container image")
    assert not (fresh / "manifest.yaml").exists()


@pytest.mark.slow
def test_pip_installs_the_same_project(project: Path) -> None:
    """The other tests use uv, which takes seconds."""
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=project, check=True)
    subprocess.run([".venv/bin/pip", "install", "--quiet", "-e", ".[dev]"], cwd=project, check=True)

    for words in (("lint",), ("test", "--unit")):
        done = invoke(project, *words)
        assert done.returncode == 0, done.stdout + done.stderr


# What a person looks for, each under the name that they try first.
TASKS = {
    *("dashboards", "gen-controller", "image", "install", "lint", "lock", "manifest", "pin", "run-local", "test"),
    *("sandbox.fetch", "sandbox.start", "sandbox.stop", "uninstall"),
}


def test_every_task_is_listed_with_a_sentence(fresh: Path) -> None:
    listed = json.loads(invoke(fresh, "--list", "--list-format=json").stdout)
    tasks = {task["name"]: task["help"] for task in listed["tasks"]}
    for collection in listed["collections"]:
        tasks |= {f"{collection['name']}.{task['name']}": task["help"] for task in collection["tasks"]}

    assert set(tasks) >= TASKS
    assert [name for name, text in tasks.items() if not text or not text[0].isupper()] == []


def test_uv_sync_installs_the_same_project(fresh: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(fresh, tmp_path / fresh.name, ignore=shutil.ignore_patterns(".venv")))

    uv(copy, "sync", "--quiet")

    assert (copy / "uv.lock").exists()
    assert "uv.lock" in (copy / ".gitignore").read_text("utf-8").splitlines()
    assert invoke(copy, "--list").returncode == 0


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_developer_tools_come_from_the_repository_and_from_no_index(
    pristine: Path, tmp_path: Path, installer: str
) -> None:
    """In a path with spaces, without what does come from an index."""
    project = Path(shutil.copytree(pristine, tmp_path / "a folder of mine" / pristine.name))
    text = (project / "pyproject.toml").read_text("utf-8")
    for start in ("dependencies = [\n", "dev = [\n"):
        before, found, after = text.partition(start)
        kept = [line for line in after.partition("]\n")[0].splitlines(keepends=True) if "bonny-dev @ " in line]
        text = f"{before}{found}{''.join(kept)}]\n{after.partition(f'{chr(10)}]{chr(10)}')[2]}"
    (project / "pyproject.toml").write_text(text, "utf-8")
    uv(project, "venv", "--quiet", "--python", sys.executable, ".venv")
    uv(project, "pip", "install", "--quiet", "--python", ".venv/bin/python", "pip", "hatchling", "editables")
    options = ("install", "--quiet", "--no-index", "--no-build-isolation", "-e", ".[dev]")

    if installer == "uv":
        uv(project, "pip", *options, "--python", ".venv/bin/python")
    else:
        subprocess.run([".venv/bin/python", "-m", "pip", *options], cwd=project, check=True, env={})

    (wheel,) = (project / "vendor").glob(PATTERN)
    installed = project / ".venv/lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    assert (installed / f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info").is_dir()
    assert (installed / "bonny_dev/testing/plugin.py").is_file()


def test_without_the_developer_tools_a_task_says_how_to_get_them(project: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "invoke", "--list"]

    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "the developer tools are not installed here: "
        "run `uv sync && . .venv/bin/activate`, or pip install -e '.[dev]'\n"
    )


def test_tools_of_another_version_than_the_runtime_say_what_to_do(fresh: Path) -> None:
    """As after a checkout of another commit, until its tools are installed, too."""
    record = fresh / "vendor/bonny/VERSION"
    before = record.read_text("utf-8")
    record.write_text(before.replace("+", "+a"), "utf-8")
    try:
        task = invoke(fresh, "manifest", "--out", "-")
        tests = installed(fresh, "pytest")
    finally:
        record.write_text(before, "utf-8")

    sentence = "the installed developer tools are of another version than vendor/bonny: run `uv sync`, or pip install"
    assert (task.returncode, task.stdout) == (2, "")
    assert task.stderr.startswith(sentence)
    assert tests.returncode == pytest.ExitCode.USAGE_ERROR
    assert tests.stderr.startswith(f"ERROR: {sentence}")


def test_the_wheel_holds_the_operator_and_bonny_and_nothing_of_developers(fresh: Path, tmp_path: Path) -> None:
    """The image is made from it; a .gitignore that names vendor/ must not empty it."""
    copy = Path(shutil.copytree(fresh, tmp_path / fresh.name, ignore=shutil.ignore_patterns(".venv")))
    with (copy / ".gitignore").open("a", encoding="utf-8") as ignored:
        ignored.write("vendor/\n")

    uv(copy, "build", "--quiet", "--wheel", "--out-dir", str(tmp_path / "dist"))

    (wheel,) = (tmp_path / "dist").glob("*.whl")
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(unpacked)
    package = fresh.name.replace("-", "_")
    assert {path.name for path in unpacked.iterdir()} == {package, "bonny", f"{package}-0.1.0.dist-info"}
    assert checksums(unpacked / "bonny") == checksums(copy / "vendor" / "bonny")
    assert checksums(unpacked / package) == checksums(copy / "src" / package)
    assert [path for path in unpacked.rglob("*") if path.suffix == ".j2" or path.name.startswith("go.")] == []


def test_dashboards_and_alert_rules_are_written_for_the_operator(fresh: Path) -> None:
    done = invoke(fresh, "dashboards", "--out", "watching")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["wrote watching/alerts.yaml", "wrote watching/dashboard.json"]
    (group,) = yaml.safe_load((fresh / "watching" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    assert f'job="{fresh.name}"' in group["rules"][0]["expr"]
