"""`invoke manifest` in a rendered project: its parts by name, its length, and what it says when it cannot be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bonny_dev.project import Project
from bonny_dev.tasks.extras import add as add_extra
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_webhook
from bonny_dev.tasks.options import NewKind
from tests.support.baking import uninstalled
from tests.template.conftest import INSTALLED, copied, project_of


@pytest.fixture(params=sorted(INSTALLED))
def fresh(
    request: pytest.FixtureRequest,
    baked_sets: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> Path:
    """A copy of the default project, and of the fullest one; the tasks need no environment."""
    return copied(project_of(request.param, baked_sets, tmp_path_factory), tmp_path)


def test_parts_of_the_manifest_are_chosen_by_name(fresh: Path) -> None:
    def kinds(*words: str) -> set[str]:
        done = manifest(fresh, "--out", "-", *words)
        assert done.returncode == 0, done.stderr
        return {document["kind"] for document in yaml.safe_load_all(done.stdout) if document}

    usual = kinds()
    assert {"NetworkPolicy", "Service", "Deployment"} <= usual
    assert kinds("--with", "pdb, alerts", "--with", "dashboards") - usual == {
        "PodDisruptionBudget",
        "PrometheusRule",
        "ConfigMap",
    }
    assert usual - kinds("--without", "network-policy,service") == {"NetworkPolicy", "Service"}
    assert kinds("--crds-only") <= {"CustomResourceDefinition"}


def test_without_an_image_there_is_no_deployment(project: Path) -> None:
    settings = project / "pyproject.toml"
    named = settings.read_text("utf-8")
    (repository,) = re.findall('^image = "(.*)"', named, re.MULTILINE)
    assert f"image: {repository}:0.1.0\n" in uninstalled(project, "manifest", "--out", "-")

    settings.write_text(re.sub("^image = .*\n", "", named, flags=re.MULTILINE), encoding="utf-8")

    assert "kind: Deployment" not in uninstalled(project, "manifest", "--out", "-")
    assert "image: x:1" in uninstalled(project, "manifest", "--out", "-", "--image", "x:1")


def test_a_part_that_is_not_known_is_refused_with_those_that_are(fresh: Path) -> None:
    done = manifest(fresh, "--with", "pdb,nonsense")

    assert done.returncode == 2
    assert done.stderr.startswith("there is no part 'nonsense' of a manifest: --with takes ")


def test_the_manifest_of_a_fresh_project_is_short(fresh: Path) -> None:
    assert len(manifest(fresh, "--out", "-").stdout.splitlines()) < 300


def test_a_risk_is_said_beside_the_manifest(project: Path) -> None:
    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets")).write()
    add_extra(Project.at(project), ["webhooks"])
    plan_webhook(Project.at(project), "Gadget").write()

    command = [sys.executable, "-m", "invoke", "manifest", "--out", "-", "--image", "x:1"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)

    assert [*yaml.safe_load_all(done.stdout)][-1]["kind"] == "MutatingWebhookConfiguration"
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "warning: the operator has one replica, and while it restarts all writes that gadget-admission."
    )
    pyproject = project / "pyproject.toml"
    pyproject.write_text(pyproject.read_text("utf-8").replace('"webhooks", "fast"', '"fast"'), "utf-8")
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    assert done.stderr.startswith(f"{line}\nwarning: the certificates of webhooks and of secure metrics are made with ")


def manifest(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", "manifest", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def files(folder: Path) -> dict[str, bytes]:
    """The content of each file, but for the modules that Python compiled."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("name", ["helm", "kustomize", "olm"])
def test_each_format_is_a_folder_that_the_second_run_leaves_alone(project: Path, name: str) -> None:
    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets")).write()

    first, second = manifest(project, "--format", name), manifest(project, "--format", name)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    written = files(project / "deploy" / name)
    assert first.stdout == f"wrote deploy/{name}: {len(written) - 1} of {len(written) - 1} files changed\n"
    assert second.stdout == f"nothing to do: deploy/{name} is up to date\n"
    assert b"registry.example.com/widgets-operator" in b"".join(written.values())
    assert not any(str(project).encode() in text for text in written.values())


def test_generating_a_chart_again_keeps_edits_and_names_what_they_lack(project: Path) -> None:
    assert manifest(project, "--format", "helm").returncode == 0
    values = project / "deploy/helm/widgets-operator/values.yaml"
    edited = values.read_text("utf-8").replace("replicas: 1\n", "replicas: 2\n").replace("env: []\n", "")
    values.write_text(edited, encoding="utf-8")
    extra = values.with_name("templates") / "extra" / "mine.yaml"
    extra.write_text("# mine\n", encoding="utf-8")

    plan_kind(Project.at(project), NewKind(kind="Gadget", plural="gadgets")).write()
    done = manifest(project, "--format", "helm")

    assert done.returncode == 0, done.stderr
    assert (values.read_text("utf-8"), extra.read_text("utf-8")) == (edited, "# mine\n")
    assert "kept deploy/helm/widgets-operator/values.yaml, which was edited\n" in done.stdout
    assert done.stderr == (
        'warning: widgets-operator/values.yaml lacks env: [], crd: {"enable": true, "keep": true}: add the '
        "missing values, or Helm refuses the chart\n"
    )
    assert "plural: gadgets" in values.with_name("templates").joinpath("crds.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--format chart", "there is no format 'chart': --format takes yaml, helm, kustomize, olm"),
        (
            "--format helm --out -",
            "--format helm writes a folder, not one text: name a folder by --out, or leave --out",
        ),
        (
            "--format helm --namespace x",
            "--namespace does not go with --format helm, because `helm install --namespace",
        ),
        (
            "--format olm --namespace x",
            "--namespace does not go with --format olm, because it is the namespace of OLM's",
        ),
        ("--format helm --local", "--local and --crds-only are for --format yaml: leave them out for helm"),
        ("--format kustomize --crds-only", "--local and --crds-only are for --format yaml: leave them out for"),
        ("--format helm --image registry.example.com/x", "the image registry.example.com/x has no tag, and a chart"),
        ("--format helm --image X", "'X' is not a container image"),
        ("--format helm --with nonsense", "there is no part 'nonsense' of a manifest"),
        ("--format helm --out pyproject.toml", "pyproject.toml is a file: name a folder by --out"),
        ("--force", "--force is for formats that are folders: a YAML file is always replaced"),
    ],
)
def test_a_wrong_option_of_a_format_is_one_sentence_and_nothing_is_written(
    with_gadget: Path, words: str, sentence: str
) -> None:
    before = files(with_gadget / "src") | {path.name: b"" for path in with_gadget.iterdir()}

    done = manifest(with_gadget, *words.split())

    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert files(with_gadget / "src") | {path.name: b"" for path in with_gadget.iterdir()} == before


def test_an_edited_template_is_refused_unless_it_may_be_replaced(project: Path) -> None:
    assert manifest(project, "--format", "helm").returncode == 0
    template = project / "deploy/helm/widgets-operator/templates/operator.yaml"
    template.write_text("edited: true\n", encoding="utf-8")

    done = manifest(project, "--format", "helm")

    assert done.returncode == 2
    assert "generated files were edited: widgets-operator/templates/operator.yaml" in done.stderr
    assert template.read_text("utf-8") == "edited: true\n"
    assert manifest(project, "--format", "helm", "--force").returncode == 0
    assert "kind: Deployment" in template.read_text("utf-8")
