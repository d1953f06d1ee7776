"""Shipping: `invoke pin` on a forge of its own, recorded answers of a registry, and what it says without either."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DIGEST = "sha256:" + "0123456789abcdef" * 4
WORKFLOW = """jobs:
  one:
    steps:
      - uses: tools/light@v1.0.0
      - uses: tools/annotated/sub/folder@v2.1.0
      - uses: tools/pinned@0123456789012345678901234567890123456789 # v9.9.9
      - uses: ./.github/workflows/ci.yml
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def forge(tmp_path: Path) -> Path:
    """A folder of repositories that git takes for the forge: one with a light tag, one with an annotated one."""
    for name, tag in (("light", ("v1.0.0",)), ("annotated", ("-m", "a release", "v2.1.0"))):
        folder = tmp_path / "forge" / "tools" / name
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
        git(folder, "tag", *tag)
    return tmp_path / "forge"


@pytest.fixture
def environment(forge: Path, tmp_path: Path) -> dict[str, str]:
    """Leads git to `forge`; a registry's recorded answer stands in for the network."""
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho {DIGEST}\n', encoding="utf-8")
    docker.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{forge}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }


def pin(project: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", "pin"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_tags_become_commits_and_images_get_their_digests(
    project: Path, forge: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    for name in ("ci", "release"):
        (project / f".github/workflows/{name}.yml").unlink()
    workflow = project / ".github/workflows/own.yml"
    workflow.write_text(WORKFLOW, encoding="utf-8")

    done = pin(project, environment)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["pinned Dockerfile", "pinned .github/workflows/own.yml"]
    light, annotated = (git(forge / "tools" / name, "rev-parse", "HEAD") for name in ("light", "annotated"))
    assert workflow.read_text("utf-8") == WORKFLOW.replace("light@v1.0.0", f"light@{light} # v1.0.0").replace(
        "folder@v2.1.0", f"folder@{annotated} # v2.1.0"
    )
    bases = re.findall(r"^FROM (\S+)", (project / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    asked = (tmp_path / "asked").read_text("utf-8").splitlines()
    assert [base.partition("@")[2] for base in bases] == [DIGEST, DIGEST]
    assert asked == [
        f"buildx imagetools inspect {base.partition('@')[0]} --format {{{{.Manifest.Digest}}}}" for base in bases
    ]


def test_what_is_pinned_is_left_as_it_is(project: Path, environment: dict[str, str]) -> None:
    assert pin(project, environment).returncode == 0
    before = (project / "Dockerfile").read_bytes()

    done = pin(project, environment)

    assert (done.returncode, done.stdout) == (0, "")
    assert (project / "Dockerfile").read_bytes() == before


def test_images_of_a_gitlab_pipeline_get_their_digests(project: Path, environment: dict[str, str]) -> None:
    pipeline = project / ".gitlab-ci.yml"
    pipeline.write_text("check:\n  image: python:3.13\n  services:\n    - name: docker:28.2.2-dind\n", encoding="utf-8")

    done = pin(project, environment)

    assert "pinned .gitlab-ci.yml" in done.stdout
    assert pipeline.read_text("utf-8").count(f"@{DIGEST}\n") == 2


def test_a_push_without_buildx_is_refused_before_the_locks_are_written(
    project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Regression: both locks were written, and then docker printed its usage."""
    (tmp_path / "bin" / "docker").write_text("#!/bin/sh\necho unknown command: docker $1 >&2\nexit 1\n", "utf-8")
    locks = [project / name for name in ("requirements.txt", "requirements-build.txt")]
    for lock in locks:
        lock.unlink(missing_ok=True)

    command = [sys.executable, "-m", "invoke", "image", "--push"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)

    (sentence,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence.startswith("--push needs docker with buildx, which builds for several platforms: install it, or")
    assert not any(lock.exists() for lock in locks)


def test_a_tag_that_does_not_exist_is_named(project: Path, environment: dict[str, str]) -> None:
    (project / ".github/workflows/ci.yml").write_text("      - uses: tools/light@v7.0.0\n", encoding="utf-8")

    done = pin(project, environment)

    assert done.returncode == 2
    assert done.stderr == "tools/light has no tag v7.0.0: correct it in the workflow, and try again\n"


def test_without_a_network_it_says_what_was_tried(project: Path, environment: dict[str, str]) -> None:
    (project / ".github/workflows/ci.yml").write_text("      - uses: tools/unknown@v1\n", encoding="utf-8")

    done = pin(project, environment)

    assert done.returncode == 2
    assert done.stderr.startswith("`git ls-remote https://github.com/tools/unknown ")
    assert "is there a network?" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_docker_it_says_so(project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "docker").unlink()

    done = pin(project, {**environment, "PATH": f"{tmp_path}/bin"})

    assert (done.returncode, done.stderr) == (2, "docker is not installed here: install it, and try again\n")


def test_a_time_that_is_no_number_is_refused_in_one_sentence(project: Path) -> None:
    command = [sys.executable, "-m", "invoke", "uninstall", "--wait", "soon"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "an option needs a whole number: invalid literal for int() with base 10: 'soon'\n"
