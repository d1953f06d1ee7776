"""Image: the Dockerfile, its steps carried out without Docker, and what comes of them at work as in a pod."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bonny_dev.sandbox import Sandbox
from tests.support.dockerfile import build, sent, stages
from tests.support.judges import Judges
from tests.template.conftest import FULLEST, project_of

USER = "65532"


def steps(project: Path, name: str, *, stage: int = -1) -> list[str]:
    return [step.argument for step in stages((project / "Dockerfile").read_text("utf-8"))[stage] if step.name == name]


@pytest.fixture(scope="module")
def accepted() -> set[bytes]:
    """The Dockerfiles that were judged: most answers change nothing in it."""
    return set()


def test_hadolint_finds_nothing(rendered: Path, judges: Judges, accepted: set[bytes]) -> None:
    if (text := (rendered / "Dockerfile").read_bytes()) not in accepted:
        judges.accept("hadolint", "Dockerfile", cwd=rendered)
        accepted.add(text)


def test_the_image_has_two_stages_and_runs_without_root_and_shell(rendered: Path) -> None:
    first, last = stages((rendered / "Dockerfile").read_text("utf-8"))

    assert re.fullmatch(r"python:3\.13\.\d+-slim-trixie AS build", first[0].argument)
    assert last[0].argument == "gcr.io/distroless/python3-debian13:nonroot"  # Debian 13 has Python 3.13
    assert {step.name for step in last} == {"FROM", "LABEL", "COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT"}
    assert steps(rendered, "USER") == [f"{USER}:{USER}"]
    assert steps(rendered, "COPY") == ["--from=build /site /site"]
    program, *arguments = json.loads(steps(rendered, "ENTRYPOINT")[0])
    assert (program, arguments[:2]) == ("/usr/bin/python3", ["-P", "-m"])


def test_everything_is_installed_by_hash_or_from_what_was_copied(rendered: Path) -> None:
    commands = [command.strip() for run in steps(rendered, "RUN", stage=0) for command in run.split("&&")]
    installs = [command for command in commands if command.startswith("pip ")]

    assert installs
    assert all("--require-hashes" in command or "--no-index" in command for command in installs)
    assert all("--no-deps" in command for command in installs)


def test_the_builder_gets_what_the_dockerfile_copies_and_nothing_else(rendered: Path, tmp_path: Path) -> None:
    project = Path(shutil.copytree(rendered, tmp_path / "project", ignore=shutil.ignore_patterns("vendor")))
    (project / "vendor/bonny").mkdir(parents=True)
    for name in (
        "vendor/bonny_dev-0.1.0-py3-none-any.whl",
        "requirements.txt",
        "requirements-build.txt",
        ".env",
        "kubeconfig",
        "manifest.yaml",
    ):
        (project / name).touch()

    copied = {name for words in steps(project, "COPY", stage=0) for name in words.split()[:-1]}
    assert sent(project) == copied


def test_the_next_version_of_the_label_comes_from_the_build(pristine: Path) -> None:
    assert "version" not in "".join(steps(pristine, "LABEL"))
    release = (pristine / ".github/workflows/release.yml").read_text("utf-8")
    assert "org.opencontainers.image.version=${{ steps.tag.outputs.version }}" in release


# --- built and at work ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["default", pytest.param("fullest", marks=pytest.mark.slow)])
def locked(
    request: pytest.FixtureRequest, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The default project, or the fullest one, with its locks."""
    rendered = project_of(request.param, baked_sets, tmp_path_factory)
    project = Path(shutil.copytree(rendered, tmp_path_factory.mktemp("locked") / rendered.name))
    done = task(project, "lock")
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def task(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a task with the tools of this environment."""
    command = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first stage leaves behind."""
    return build(locked, tmp_path_factory.mktemp("image"))


def test_locks_have_a_hash_for_every_package_and_no_address(locked: Path) -> None:
    for name in ("requirements.txt", "requirements-build.txt"):
        text = (locked / name).read_text("utf-8")
        assert "://" not in text
        assert not text.startswith("#")
        for entry in text.replace("\\\n", "").splitlines():
            assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry), entry
    packages = (locked / "requirements.txt").read_text("utf-8")
    assert "pytest" not in packages
    assert "\nuvloop==" in packages, "the extra `fast`, which [tool.bonny] names"


@pytest.mark.slow  # a build of its own, to see what pip refuses by itself
def test_a_lock_with_a_changed_hash_is_refused(locked: Path, tmp_path: Path) -> None:
    project = Path(shutil.copytree(locked, tmp_path / "project", ignore=shutil.ignore_patterns(".venv")))
    lock = project / "requirements-build.txt"
    lock.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", lock.read_text("utf-8")), encoding="utf-8")
    (tmp_path / "image").mkdir()

    with pytest.raises(AssertionError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        build(project, tmp_path / "image")


def test_the_tree_holds_compiled_modules_and_nothing_that_installs_or_tests(site: Path) -> None:
    sources = [path for path in site.rglob("*.py") if "site-packages" not in path.parts]
    compiled = {path.parent.parent / f"{path.name.split('.')[0]}.py" for path in site.rglob("__pycache__/*.pyc")}

    assert len(sources) > 1000
    assert [path for path in sources if path not in compiled] == []
    assert not {"pip", "setuptools", "hatchling", "pytest", "mypy", "uv", "bin"} & {
        path.name for path in site.iterdir()
    }
    # Valid whatever the time of the source file: a flag of 1 (hash-based) without the check bit (PEP 552).
    assert {next(site.rglob("__pycache__/*.pyc")).read_bytes()[4]} == {1}


Jailed = Callable[..., list[str]]


@pytest.fixture
def jailed(site: Path, tmp_path: Path) -> Jailed:
    """A command in a tree of its own, as in a pod: read-only but for /tmp, as user 65532, without a shell in it."""
    if os.getuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root can lay out the file system of a container here")
    root = tmp_path / "root"
    python = Path(sys.base_prefix)
    shown = [path for path in map(Path, ("/lib", "/lib64", "/usr/lib", "/etc/ssl", python)) if path.is_dir()]
    script = [f"mount -t tmpfs none {root}", f"mkdir -p {root}/site {root}/tmp"]
    for path in shown:
        script += [f"mkdir -p {root}{path}", f"mount --rbind -o ro {path} {root}{path}"]
    script += [
        f"mount --bind -o ro {site} {root}/site",
        f"cp {tmp_path}/kubeconfig {root}/kubeconfig 2>/dev/null || true",
    ]
    script += [f"mount -o remount,ro {root}", f"mount -t tmpfs -o mode=1777 none {root}/tmp"]
    root.mkdir()
    program = str(python / "bin" / f"python3.{sys.version_info.minor}")

    def command(*arguments: str) -> list[str]:
        setting = "PYTHONPATH=/site PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp"
        setting += " BONNY_POD_NAMESPACE=default BONNY_LOG_FORMAT=json BONNY_HTTP_PORT=0 BONNY_HTTP_HOST=127.0.0.1"
        enter = f"exec env -i {setting} {shutil.which('chroot')} --userspec={USER}:{USER} {root} {program} -P"
        return ["unshare", "--mount", "sh", "-ec", "\n".join([*script, f'{enter} "$@"']), "sh", *arguments]

    return command


def test_the_tree_cannot_be_written_to_by_whoever_runs_in_it(jailed: Jailed) -> None:
    code = """
import os
print(os.getuid(), os.path.exists("/bin/sh"))
open("/tmp/scratch", "w").close()
for path in ("/x", "/site/x", "/site/bonny/x"):
    try:
        open(path, "w")
    except OSError as error:
        print(path, error.errno)
"""
    done = subprocess.run(jailed("-c", code), capture_output=True, text=True, check=False)

    assert done.stdout.splitlines() == [f"{USER} False", "/x 30", "/site/x 30", "/site/bonny/x 30"], done.stderr


def test_the_built_operator_tells_its_version(jailed: Jailed, locked: Path) -> None:
    """The wheel is in the tree, not only its modules: a version of 0.0.0 would say otherwise."""
    package = locked.name.replace("-", "_")
    done = subprocess.run(jailed("-m", package, "version"), capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"{locked.name}/0.1.0\n", "")


@pytest.mark.server
def test_the_built_operator_starts_and_ends_as_in_a_pod(
    jailed: Jailed, locked: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    shutil.copy(sandbox.kubeconfig, tmp_path / "kubeconfig")
    (tmp_path / "kubeconfig").chmod(0o644)
    package = locked.name.replace("-", "_")
    log = tmp_path / "log"
    words = jailed(
        "-c",
        "import os, runpy; os.environ['KUBECONFIG'] = '/kubeconfig'; "
        f"runpy.run_module('{package}.__main__', None, '__main__')",
    )
    with log.open("wb") as stream:
        process = subprocess.Popen(words, stdout=stream, stderr=subprocess.STDOUT)
    try:
        Sandbox.eventually(lambda: "started" in log.read_text("utf-8"), within_seconds=60)
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    finally:
        process.kill()
        process.wait()

    assert code == 0, log.read_text("utf-8")
    assert "Traceback" not in log.read_text("utf-8")


@pytest.mark.slow
def test_docker_builds_the_image_and_runs_it(locked: Path) -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no Docker engine")
    done = task(locked, "image")
    assert done.returncode == 0, done.stdout + done.stderr
    image = re.findall(r"--tag (\S+)", done.stdout)[0]

    said = subprocess.run(
        ["docker", "run", "--rm", "--read-only", "--cap-drop=ALL", image, "version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == f"{locked.name}/0.1.0\n"


# --- invoke image -----------------------------------------------------------------------------------------------------


def test_the_commands_of_docker_are_printed(locked: Path) -> None:
    (here,) = docker_commands(locked)
    (pushed,) = docker_commands(locked, "--push")
    image = (
        "localhost:5000/team/z__z" if locked.name == FULLEST["operator_slug"] else f"registry.example.com/{locked.name}"
    )

    labelled = f"--label org.opencontainers.image.version=0.1.0 --tag {image}:0.1.0 ."
    assert here == f"docker build {labelled}"
    assert pushed == (
        "docker buildx build --platform linux/amd64,linux/arm64 --sbom true --provenance mode=max --push " + labelled
    )


def docker_commands(project: Path, *words: str) -> list[str]:
    done = task(project, "--dry", "image", *words)
    assert done.returncode == 0, done.stderr
    return re.findall(r"docker .* \.$", done.stdout, re.MULTILINE)


def test_an_image_without_a_lock_gets_one_first(project: Path) -> None:
    done = task(project, "--dry", "image")

    assert done.returncode == 0, done.stderr
    assert (project / "requirements.txt").exists()
    assert (project / "requirements-build.txt").exists()


def test_a_lock_that_cannot_be_made_is_the_tasks_exit_code(project: Path) -> None:
    text = (project / "pyproject.toml").read_text("utf-8")
    (project / "pyproject.toml").write_text(text.replace("pyyaml>=6,<7", "pyyaml>=999"), encoding="utf-8")

    done = task(project, "--dry", "image")

    assert done.returncode == 1
    assert "pyyaml" in done.stderr
    assert "docker" not in done.stdout
