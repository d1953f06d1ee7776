"""`invoke manifest` in a rendered project: its parts by name, its length, and what it says when it cannot be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from bonny_dev.project import Project
from bonny_dev.tasks.extras import add as add_extra
from bonny_dev.tasks.generate import plan_kind
from bonny_dev.tasks.generators import plan_webhook
from bonny_dev.tasks.options import NewKind
from tests.support.baking import invoke, uninstalled


def test_parts_of_the_manifest_are_chosen_by_name(fresh: Path) -> None:
    def kinds(*words: str) -> set[str]:
        done = invoke(fresh, "manifest", "--out", "-", *words)
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
    done = invoke(fresh, "manifest", "--with", "pdb,nonsense")

    assert done.returncode == 2
    assert done.stderr.startswith("there is no part 'nonsense' of a manifest: --with takes ")


def test_the_manifest_of_a_fresh_project_is_short(fresh: Path) -> None:
    assert len(invoke(fresh, "manifest", "--out", "-").stdout.splitlines()) < 300


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
