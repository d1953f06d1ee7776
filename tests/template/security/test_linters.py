"""Linters on the manifest of a fresh project with one kind: what they find is what docs/security.md gives a reason for.

Each runs where it is on PATH. `make test-all` runs them; that page says how to install them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator
from tests.support.baking import uninstalled
from tests.support.openapi import write_schemas
from tests.support.pages import SECURITY, rows

pytestmark = pytest.mark.slow

REPLICAS = {"one replica": 1, "two replicas": 2}


@pytest.fixture(scope="module", params=REPLICAS)
def replicas(request: pytest.FixtureRequest) -> str:
    """With how many, in the words of the page."""
    return str(request.param)


@pytest.fixture(scope="module")
def manifest(replicas: str, with_widgets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest that a person gets who wants so many replicas."""
    project = Path(shutil.copytree(with_widgets, tmp_path_factory.mktemp("linted") / with_widgets.name))
    operator = project / "src" / "widgets_operator" / "operator.py"
    said = operator.read_text("utf-8")
    deploy = f"    deploy=Deploy(replicas={REPLICAS[replicas]}),\n"
    said = said.replace("import Operator", "import Deploy, Operator").replace("    watch=", f"{deploy}    watch=")
    operator.write_text(said, encoding="utf-8")
    uninstalled(project, "manifest", "--image", "registry.example.com/widgets-operator:1.0.0")
    return project / "manifest.yaml"


def linted(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on PATH")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def kube_score(manifest: Path) -> set[str]:
    done = linted("kube-score", "score", "--output-format", "json", str(manifest))
    # From 1, critical, to 10, nothing to say.
    return {
        check["check"]["id"]
        for scored in json.loads(done.stdout)
        for check in scored["checks"]
        if not check["skipped"] and check["grade"] < 10
    }


def checkov(manifest: Path) -> set[str]:
    quietly = ("--framework", "kubernetes", "--skip-download", "--quiet", "--compact", "--output", "json")
    done = linted("checkov", "--file", str(manifest), *quietly)
    found = json.loads(done.stdout)
    assert found["summary"]["passed"] > 80
    assert found["summary"]["parsing_errors"] == 0
    return {check["check_id"] for check in found["results"]["failed_checks"]}


@pytest.mark.parametrize("linter", [kube_score, checkov])
def test_every_finding_has_a_reason_and_no_reason_is_left_over(
    linter: Callable[[Path], set[str]], manifest: Path, replicas: str
) -> None:
    program = linter.__name__.replace("_", "-")
    accepted = {
        finding
        for name, finding, when, why in rows(SECURITY, "linter")
        if name == program and when in {"any", replicas}
    }

    assert linter(manifest) == accepted


def test_every_row_is_looked_for() -> None:
    for name, finding, when, why in rows(SECURITY, "linter"):
        assert name in {"kube-score", "checkov"}, finding
        assert when in {"any", *REPLICAS}, finding
        assert why


def test_kubernetes_validate_finds_nothing(manifest: Path) -> None:
    done = linted("kubernetes-validate", "--strict", str(manifest))

    assert done.returncode == 0, done.stdout + done.stderr
    said = (done.stdout + done.stderr).splitlines()
    assert len([line for line in said if "passed" in line]) == len(
        list(yaml.safe_load_all(manifest.read_text("utf-8")))
    )


@pytest.mark.server
def test_kubeconform_finds_nothing_with_the_schemas_of_the_api_server(
    manifest: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    objects = list(yaml.safe_load_all(manifest.read_text("utf-8")))
    with Administrator(sandbox) as server:
        write_schemas(server, objects, tmp_path)
    location = f"{tmp_path}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"

    def conform(file: Path) -> subprocess.CompletedProcess[str]:
        return linted("kubeconform", "-strict", "-summary", "-output", "json", "-schema-location", location, str(file))

    done = conform(manifest)
    assert done.returncode == 0, done.stdout
    summary = json.loads(done.stdout)["summary"]
    assert summary == {"valid": len(objects), "invalid": 0, "errors": 0, "skipped": 0}

    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(manifest.read_text("utf-8").replace("enableServiceLinks", "enableServiceLink"), encoding="utf-8")
    assert conform(wrong).returncode != 0
