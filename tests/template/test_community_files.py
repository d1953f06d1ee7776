"""Files of this repository for the people of its forge: valid, pinned, and not rendered."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import yaml

from tests.support.baking import TEMPLATE, rendered_files
from tests.support.judges import Judges, actionlint
from tests.template.test_pipelines import NAMED

FORGE = TEMPLATE / ".github"
CI = FORGE / "workflows" / "ci.yml"


def test_the_files_fit_their_schemas(judges: Judges) -> None:
    judges.accept("check-jsonschema", "--builtin-schema", "vendor.github-workflows", CI, cwd=TEMPLATE)
    judges.accept("check-jsonschema", "--builtin-schema", "vendor.dependabot", FORGE / "dependabot.yml", cwd=TEMPLATE)
    command = [actionlint(), "-shellcheck=", "-pyflakes=", CI]
    done = subprocess.run(command, cwd=TEMPLATE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    found = judges.run(
        "zizmor", "--offline", "--no-progress", "--persona=pedantic", "--format=json", ".github", cwd=TEMPLATE
    )
    assert {finding["ident"] for finding in json.loads(found.stdout)} <= set(NAMED), found.stderr


def test_actions_are_pinned_to_the_commits_that_rendered_repositories_use() -> None:
    rendered = TEMPLATE / "<<cookiecutter.operator_slug>>" / ".github" / "workflows"
    pinned = set(re.findall(r"uses: (.+)", "".join(path.read_text("utf-8") for path in rendered.glob("*ci.yml*"))))
    used = set(re.findall(r"uses: (.+)", CI.read_text("utf-8")))
    assert used
    assert used <= pinned


def test_the_workflow_does_as_a_developer_on_each_supported_python_and_builds_the_site() -> None:
    jobs = yaml.safe_load(CI.read_text("utf-8"))["jobs"]
    versions = jobs["test"]["strategy"]["matrix"]["python"]
    table = re.findall(r"^\| (3\.\d+)[^|]*\|", (TEMPLATE / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    rendered = (TEMPLATE / "<<cookiecutter.operator_slug>>" / "pyproject.toml").read_text("utf-8")
    oldest = re.findall(r'requires-python = ">=([\d.]+)"', rendered)

    assert versions == table
    assert versions[:1] == oldest
    assert {job: [step["run"] for step in jobs[job]["steps"] if "run" in step] for job in jobs} == {
        "test": ["make test"],
        "docs": ["make docs"],
    }


def test_every_issue_template_has_the_fields_that_the_forge_requires() -> None:
    forms = [path for path in sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
    for form in forms:
        read = yaml.safe_load(form.read_text("utf-8"))
        assert {"name", "description", "body"} <= set(read), form.name
        fields = [field for field in read["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields)
        assert len({field["id"] for field in fields}) == len(fields)
    assert [form.stem for form in forms] == ["bug", "feature"]


def test_a_rendered_repository_gets_none_of_these_files(rendered: Path) -> None:
    names = {path.relative_to(rendered).as_posix() for path in rendered_files(rendered)}
    ours = {path.relative_to(TEMPLATE).as_posix() for path in FORGE.rglob("*") if path.is_file()}
    shared = {".github/workflows/ci.yml", ".github/dependabot.yml"}  # of the same name, and with other content
    assert names & ours <= shared
    for name in names & shared:
        assert (rendered / name).read_bytes() != (TEMPLATE / name).read_bytes()
    assert not {name for name in names if "CONDUCT" in name or "docs/site" in name}


def test_the_tests_do_not_require_the_generator_of_the_site() -> None:
    groups = tomllib.loads((TEMPLATE / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    assert groups["docs"] == ["zensical==0.0.73"]
    assert {"include-group": "docs"} not in groups["dev"]
    assert "zensical" not in (TEMPLATE / "requirements.lock").read_text("utf-8")
    assert "zensical==0.0.73 " in (TEMPLATE / "docs" / "site" / "requirements.lock").read_text("utf-8")
