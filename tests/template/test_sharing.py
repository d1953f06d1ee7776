"""Replicas that share the work, in a rendered repository: the extra, its tests, its manifest, and replicas here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bonny_dev.sandbox import Sandbox
from tests.support.baking import install, invoke
from tests.template.conftest import copied
from tools.terminal import CTRL_C, Terminal, plain

OPERATOR = "src/widgets_operator/operator.py"
REPLICAS_TEST = '''"""Two replicas share the Widgets."""

from bonny_dev.testing import RunningOperator


async def test_two_replicas_share_the_widgets_and_one_goes_on_alone(running_operator: RunningOperator) -> None:
    other = await running_operator.join()
    await other.until_logged("bucket gained")
    await running_operator.until_logged("bucket given back")
    await other.stop()
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "shared"},
        "spec": {"size": 3},
    }
    await running_operator.apply(widget)
    await running_operator.until(widget, lambda live: "observedGeneration" in live.get("status", {}))
'''


@pytest.fixture(scope="module")
def sharing(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose operator shares its work among three replicas."""
    project = copied(pristine, tmp_path_factory.mktemp("sharing"))
    install(project)
    assert invoke(project, "gen-controller", "Widget", "widgets").returncode == 0
    done = invoke(project, "extras", "--add", "sharding")
    assert done.returncode == 0, done.stdout + done.stderr
    source = (project / OPERATOR).read_text("utf-8")
    source = source.replace(
        "from bonny import Operator, discover\n",
        "from bonny import Deploy, Operator, discover\nfrom bonny.sharding import Sharding\n",
    )
    options = "    sharding=Sharding(buckets=16),\n    deploy=Deploy(replicas=3),\n)\n"
    (project / OPERATOR).write_text(source.removesuffix(")\n") + options, "utf-8")
    (project / "tests/integration/test_replicas.py").write_text(REPLICAS_TEST, "utf-8")
    return project


@pytest.mark.slow  # below, its replicas run; test_extras lints and tests all extras together
def test_lint_types_and_all_tests_pass(sharing: Path) -> None:
    done = invoke(sharing, "lint", "test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "$ mypy" in done.stdout


def test_the_manifest_has_three_replicas_on_different_nodes_their_leases_and_a_disruption_budget(sharing: Path) -> None:
    done = invoke(sharing, "manifest", "--image", "example.com/widgets:1", "--out", "-")
    assert done.returncode == 0, done.stderr
    documents = list(yaml.safe_load_all(done.stdout))
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 3
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    (budget,) = [each for each in documents if each["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["maxUnavailable"] == 1
    roles = [each for each in documents if each["kind"] == "Role"]
    verbs = {
        verb for role in roles for rule in role["rules"] if "leases" in rule["resources"] for verb in rule["verbs"]
    }
    assert verbs == {"get", "list", "watch", "create", "update", "patch", "delete"}


@pytest.fixture
def terminal(sharing: Path, tmp_path: Path) -> Iterator[Terminal]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE"))}
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = {"HOME": str(tmp_path), "XDG_CACHE_HOME": cache, "TMPDIR": str(tmp_path), "PYTHONPATH": ""}
    command = [str(sharing / ".venv/bin/invoke"), "run-local", "--sandbox", "--replicas", "2", "--apply-samples"]
    with Terminal(command, cwd=sharing, env={**kept, **place}) as opened:
        yield opened


def test_run_local_starts_replicas_and_doctor_names_the_holder_of_each_bucket(
    sharing: Path, terminal: Terminal, tmp_path: Path
) -> None:
    at = terminal.wait_for("export KUBECONFIG=")
    terminal.wait_for("kubectl", after=at)
    kubeconfig = plain(terminal.text)[at:].partition("\n")[0].strip()
    terminal.wait_for("[2] ")

    def examined() -> str:
        words = [str(sharing / ".venv/bin/invoke"), "doctor", "--namespace", "default"]
        environment = {**os.environ, "KUBECONFIG": kubeconfig, "PYTHONPATH": ""}
        return subprocess.run(words, cwd=sharing, env=environment, capture_output=True, text=True, check=False).stdout

    def shared() -> str | None:
        text = examined()
        return text if "16 buckets by fnv1a64 in 2 replicas; the API server has no shardSelector" in text else None

    lines = (Sandbox.eventually(shared, within_seconds=90) or "").splitlines()
    (first, second) = [line.strip() for line in lines if line.strip().startswith("replica-")]
    numbers = {int(each) for line in (first, second) for each in line.split(": ")[1].split(";")[0].split(", ")}
    assert numbers == set(range(16))
    assert all("; since 20" in line for line in (first, second))
    assert "widget-sample" in plain(terminal.text)

    terminal.press(CTRL_C)
    assert terminal.ended() == 0, terminal.text
    assert "Traceback" not in terminal.text
    assert "permissions" in plain(terminal.text)
    Sandbox.eventually(lambda: not list(tmp_path.glob("bonny-*")), within_seconds=30)


def test_replicas_are_refused_beside_reload_and_in_impossible_numbers(sharing: Path) -> None:
    for words, said in (
        (("--replicas", "2", "--reload"), "--replicas and --reload exclude each other"),
        (("--replicas", "0"), "--replicas is 0: use a number from 1 to 10"),
    ):
        done = invoke(sharing, "run-local", "--sandbox", *words)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
        assert "Traceback" not in done.stderr
