"""Pipelines: what a forge does with a rendered repository, as its own schema and the judges of workflows see it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.judges import Judges, actionlint
from tests.template.conftest import ANSWER_SETS, project_of


def rendered_for(forge: str) -> list[str]:
    """The answer sets with this forge."""
    return sorted(name for name, answers in ANSWER_SETS.items() if answers.get("ci", "github") == forge)


@pytest.fixture(scope="session", params=rendered_for("github"))
def on_github(
    request: pytest.FixtureRequest, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return project_of(request.param, baked_sets, tmp_path_factory)


@pytest.fixture(scope="session", params=rendered_for("gitlab"))
def on_gitlab(
    request: pytest.FixtureRequest, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return project_of(request.param, baked_sets, tmp_path_factory)


def workflows(project: Path) -> dict[str, dict[str, Any]]:
    """By file name. YAML 1.1 reads the key `on` as true."""
    return {
        path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted((project / ".github/workflows").glob("*.yml"))
    }


def steps(project: Path) -> list[dict[str, Any]]:
    jobs = [job for workflow in workflows(project).values() for job in workflow["jobs"].values()]
    return [step for job in jobs for step in job.get("steps", ())]


def test_workflows_and_dependabot_fit_their_schemas(on_github: Path, judges: Judges) -> None:
    files = sorted((on_github / ".github/workflows").glob("*.yml"))
    judges.accept("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files, cwd=on_github)
    dependabot = on_github / ".github/dependabot.yml"
    judges.accept("check-jsonschema", "--builtin-schema", "vendor.dependabot", dependabot, cwd=on_github)


def test_actionlint_finds_nothing(on_github: Path) -> None:
    files = sorted((on_github / ".github/workflows").glob("*.yml"))
    command = [actionlint(), "-shellcheck=", "-pyflakes=", *files]
    done = subprocess.run(command, cwd=on_github, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


# What zizmor finds only when it is asked to be pedantic, and why it stays.
NAMED = {
    "anonymous-definition": "the name of a job says what it does",
    "self-repository": "a workflow of the same repository by its path, as all that read workflows know it",
}


def test_zizmor_finds_nothing_but_what_is_named_here(on_github: Path, judges: Judges) -> None:
    done = judges.run(
        "zizmor", "--offline", "--no-progress", "--persona=pedantic", "--format=json", ".github", cwd=on_github
    )

    found = {finding["ident"] for finding in json.loads(done.stdout)}
    assert found <= set(NAMED), done.stderr


def test_workflows_grant_nothing_by_default_keep_no_credentials_and_end(on_github: Path) -> None:
    for name, workflow in workflows(on_github).items():
        assert workflow["permissions"] == {}
        assert workflow["concurrency"]["cancel-in-progress"] is (name == "ci.yml")
        for job in workflow["jobs"].values():
            assert job["permissions"]["contents"] == "read"
            assert "uses" in job or job["timeout-minutes"] <= 60
    for step in steps(on_github):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_only_the_release_may_write_and_only_what_it_must(on_github: Path) -> None:
    found = workflows(on_github)
    may = {
        permission
        for workflow in found.values()
        for job in workflow["jobs"].values()
        for permission, how in job["permissions"].items()
        if how == "write"
    }
    registry = found["release.yml"]["jobs"]["image"]["env"]["IMAGE"].split("/")[0]

    assert all(how == "read" for job in found["ci.yml"]["jobs"].values() for how in job["permissions"].values())
    assert may == {"id-token", "attestations"} | ({"packages"} if registry == "ghcr.io" else set())


def test_every_action_is_pinned_to_a_commit_with_its_tag_beside_it(on_github: Path) -> None:
    """Each of these commits was seen beside its tag in several public repositories (docs/decisions/0032)."""
    text = "".join(path.read_text(encoding="utf-8") for path in (on_github / ".github/workflows").glob("*.yml"))
    used = re.findall(r"uses: (?!\./)(.+)", text)

    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_a_release_is_checked_built_for_two_architectures_and_signed(on_github: Path) -> None:
    release = workflows(on_github)["release.yml"]
    build = next(step["with"] for step in steps(on_github) if step.get("id") == "build")

    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["jobs"]["image"]["needs"] == "check"
    assert (build["platforms"], build["sbom"], build["provenance"]) == ("linux/amd64,linux/arm64", True, "mode=max")
    assert any("attest-build-provenance" in step.get("uses", "") for step in steps(on_github))
    assert any(step.get("run", "").startswith("cosign sign --yes") for step in steps(on_github))


def test_the_gitlab_pipeline_and_renovate_fit_their_schemas(on_gitlab: Path, judges: Judges) -> None:
    """Regression: a job was called `image`, which GitLab keeps for itself."""
    pipeline = ("vendor.gitlab-ci", "--data-transform", "gitlab-ci", ".gitlab-ci.yml")
    judges.accept("check-jsonschema", "--builtin-schema", *pipeline, cwd=on_gitlab)
    judges.accept("check-jsonschema", "--builtin-schema", "vendor.renovate", "renovate.json", cwd=on_gitlab)


def test_both_forges_do_the_same(on_gitlab: Path, on_github: Path) -> None:
    """The commands of a check are those of a developer, on either forge."""
    pipeline = yaml.safe_load((on_gitlab / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    checks = next(job for job in workflows(on_github)["ci.yml"]["jobs"].values() if "steps" in job)
    theirs = " && ".join(step["run"] for step in checks["steps"] if "run" in step)
    release = " ".join(pipeline["release"]["script"])

    assert " && ".join(pipeline["check"]["script"]).replace(" --no-cache-dir", "") == theirs
    for word in ("linux/amd64,linux/arm64", "--sbom true", "--provenance mode=max", "cosign sign"):
        assert word in release
    assert pipeline["release"]["id_tokens"] == {"SIGSTORE_ID_TOKEN": {"aud": "sigstore"}}
    assert all("timeout" in job for name, job in pipeline.items() if name in ("check", "build", "release"))


def test_both_forges_prove_each_night_with_the_tags_at_hand_once_there_is_a_sample(
    on_gitlab: Path, on_github: Path
) -> None:
    scheduled = yaml.safe_load((on_gitlab / ".gitlab-ci.yml").read_text(encoding="utf-8"))["prove"]
    checkout, *_, last = workflows(on_github)["nightly.yml"]["jobs"]["prove"]["steps"]

    assert scheduled["script"][-1] == last["run"] == "invoke prove --thorough --minutes 40"
    assert (scheduled["variables"]["GIT_DEPTH"], checkout["with"]["fetch-depth"]) == ("0", 0)
    assert scheduled["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"', "exists": ["samples/*.yaml"]}]
    assert last["if"] == "hashFiles('samples/*.yaml') != ''"


@pytest.mark.parametrize("answers", ["default", "fullest"])
def test_the_files_of_editors_and_of_pre_commit_can_be_read(
    answers: str, judges: Judges, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = project_of(answers, baked_sets, tmp_path_factory)
    container = project / ".devcontainer/devcontainer.json"

    judges.accept("pre-commit", "validate-config", ".pre-commit-config.yaml", cwd=project)
    assert container.exists() is (answers == "fullest")
    assert not container.exists() or json.loads(container.read_text(encoding="utf-8"))["image"]
