"""What a running operator loads: no server of an extra that it does not use, no second HTTP client, no tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.loops import LOOPS

RUNTIME = Path(__file__).parents[2] / "runtime"
NOT_LOADED = ("bonny_dev", "bonny.compat", "cryptography", "invoke", "jinja2", "opentelemetry", "pytest")
EXTRAS = (
    "bonny.cron",
    "bonny.filters",
    "bonny.metrics_auth",
    "bonny.otel",
    "bonny.scheduler",
    "bonny.tls",
    "bonny.webhooks",
)
# Of the extras that a repository carries, an operator that uses none loads those that a variable can switch on.
DECLARED = {
    *("bonny.metrics_auth", "bonny.metrics_auth.extra", "bonny.metrics_auth.settings"),
    *("bonny.otel", "bonny.otel.extra", "bonny.otel.provider"),
    *(f"bonny.webhooks{name}" for name in ("", ".admission", ".extra", ".review", ".settings")),
}

# Its server does not answer: it goes on trying to connect, until what was loaded is printed.
PROGRAM = """
import importlib, os, sys, threading, time
from bonny import Controller, Deploy, Kind, Operator
from bonny.main import main
{more}

class Pods(Controller):
    resource = Kind("v1", "Pod")

    async def reconcile(self, axn): ...

def report():
    waits_for = os.environ.get("WAITS_FOR", "bonny")
    while waits_for not in sys.modules:
        time.sleep(0.02)
    importlib.import_module(waits_for)  # waits for the end of its import
    print(*sys.modules, sep="\\n", flush=True)
    os._exit(0)

deploy = Deploy(certificates="cert-manager")
operator = Operator(name="example", group="example.com", controllers=[Pods{part}], deploy=deploy)
threading.Timer(0.5, report).start()
main(operator, ["run"])
"""
SCHEDULER = """
from bonny.scheduler import Scheduler
class First(Scheduler):
    name = "first"
    def select_node_for_pod(self, pod, nodes): return None
"""
ADMISSION = """
from bonny.webhooks import Admission
class First(Admission):
    resource = Kind("v1", "Pod")
    def validate(self, review): ...
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""


def loaded_by(program: str, folder: Path, **settings: str) -> set[str]:
    """The modules that an operator loads until it connects."""
    (folder / "kubeconfig").write_text(KUBECONFIG, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME), "KUBECONFIG": str(folder / "kubeconfig")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "BONNY_HTTP_PORT": "0", **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def of_extras(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.startswith(EXTRAS)}


def of_tools(loaded: set[str]) -> list[str]:
    return sorted(name for name in loaded if name.startswith(NOT_LOADED))


def test_an_operator_without_schedulers_and_webhooks_loads_their_declarations_and_no_tools(tmp_path: Path) -> None:
    loaded = loaded_by(PROGRAM.format(more="", part=""), tmp_path)

    assert "bonny.run.process" in loaded
    # Whether there are traces is looked up when a run begins, perhaps after the list was printed.
    assert DECLARED - {"bonny.otel.provider"} <= of_extras(loaded) <= DECLARED
    assert of_tools(loaded) == []


def test_an_operator_with_a_scheduler_loads_it_and_no_tools(tmp_path: Path) -> None:
    program = PROGRAM.format(more=SCHEDULER, part=", First")
    loaded = loaded_by(program, tmp_path, WAITS_FOR="bonny.scheduler.server")

    assert {"bonny.run.process", "bonny.scheduler.server"} <= loaded
    assert {name for name in of_extras(loaded) - DECLARED if not name.startswith("bonny.scheduler")} == set()
    assert of_tools(loaded) == []


def test_an_operator_with_webhooks_loads_their_tls_and_nothing_of_metrics(tmp_path: Path) -> None:
    program, waits_for = PROGRAM.format(more=ADMISSION, part=", First"), "bonny.webhooks.serving"
    loaded = loaded_by(program, tmp_path, BONNY_WEBHOOK_PORT="0", WAITS_FOR=waits_for)

    used = ("bonny.webhooks", "bonny.tls")
    assert {"bonny.webhooks.serving", "bonny.tls.serving", "bonny.webhooks.app"} <= loaded
    assert {name for name in of_extras(loaded) - DECLARED if not name.startswith(used)} == set()
    assert of_tools(loaded) == []


def test_an_operator_with_metrics_over_tls_loads_nothing_of_webhooks(tmp_path: Path) -> None:
    program, waits_for = PROGRAM.format(more="", part=""), "bonny.metrics_auth.server"
    loaded = loaded_by(program, tmp_path, BONNY_SECURE_METRICS_PORT="0", WAITS_FOR=waits_for)

    used = ("bonny.metrics_auth", "bonny.tls")
    assert {"bonny.metrics_auth.server", "bonny.metrics_auth.scrapers", "bonny.tls.serving"} <= loaded
    assert {name for name in of_extras(loaded) - DECLARED if not name.startswith(used)} == set()
    assert of_tools(loaded) == []


# As in a pod: with the files of a ServiceAccount. Both probes and /metrics are asked before what was loaded is printed.
IN_A_CLUSTER = """
import os, sys, threading, time, urllib.request
from pathlib import Path
from bonny import Controller, Kind, Operator
from bonny.client.config import InCluster
from bonny.main import serve
from bonny.run import process
from bonny.run.config import Config

class Pods(Controller):
    resource = Kind("v1", "Pod")

    async def reconcile(self, axn): ...

made = []

class Process(process.Process):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        made.append(self)

def report():
    while not (made and made[0]._started):
        time.sleep(0.05)
    for path in ("healthz", "metrics"):
        urllib.request.urlopen(f"http://127.0.0.1:{made[0].probes.port}/{path}", timeout=20).read()
    print(*sys.modules, sep="\\n", flush=True)
    os._exit(0)

sys.modules["bonny.main"].Process = Process
threading.Thread(target=report).start()
operator = Operator(name="example", group="example.com", controllers=[Pods])
config = Config(http_host="127.0.0.1", http_port=0, leader_election=True, event_loop="LOOP")
serve(operator, config, InCluster("https://127.0.0.1:1", Path(os.environ["KUBECONFIG"]).parent))
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_an_operator_in_a_cluster_loads_no_client_of_the_official_library(loop: str, tmp_path: Path) -> None:
    loaded = loaded_in_a_cluster(loop, tmp_path)

    assert {"bonny.run.metrics", "bonny.run.leader", "bonny.run.probes"} <= loaded
    assert "uvicorn" not in loaded
    assert sorted(name for name in loaded if name.partition(".")[0] == "kubernetes") == []
    assert ("uvloop" in loaded) == (loop == "uvloop")


@pytest.mark.parametrize("loop", LOOPS)
def test_an_operator_in_a_cluster_loads_no_aiohttp(loop: str, tmp_path: Path) -> None:
    loaded = loaded_in_a_cluster(loop, tmp_path)

    assert sorted(name for name in loaded if name.partition(".")[0] == "aiohttp") == []


def test_the_server_of_the_probes_loads_no_aiohttp(tmp_path: Path) -> None:
    loaded = loaded_by('import bonny.run.probes, sys; print(*sys.modules, sep="\\n")', tmp_path)

    assert sorted(name for name in loaded if name.partition(".")[0] in {"aiohttp", "kubernetes"}) == []


def loaded_in_a_cluster(loop: str, folder: Path) -> set[str]:
    """The modules of an operator with the files of a ServiceAccount, once it has answered its probes."""
    Authority(folder)  # ca.crt
    (folder / "token").write_text("token", "ascii")
    return loaded_by(IN_A_CLUSTER.replace("LOOP", loop), folder)
