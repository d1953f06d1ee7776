"""A real Prometheus: takes our rules, scrapes an operator at work, has figures for each panel, alarms, knows traces."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny import Controller, Operator, PeriodicTask, TaskRun, Terminal
from bonny.kinds import Kind
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from bonny_dev.tasks.dashboards import write
from tests.support.serving import serving
from tests.support.things import GROUP, config_map
from tests.support.traced import Collected, trace_of

JOB = "scraped-operator"
NAMESPACE = "scraped"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("promtool")),
        reason="prometheus and promtool are not on PATH (Debian package prometheus)",
    ),
]


class Maps(Controller[Any]):
    resource = Kind("v1", "ConfigMap", namespace=NAMESPACE)

    async def reconcile(self, axn: Any) -> None:
        if axn.key.name == "broken" and axn.tries < 3:
            raise RuntimeError("not yet")
        if axn.key.name == "hopeless":
            axn.tasks.register(PeriodicTask("fails", fails, interval=0.01))
            raise Terminal("it will never do")


def fails(run: TaskRun) -> None:
    raise RuntimeError("always")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def asked(port: int, path: str, **query: str) -> Any:
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.loads(answer.read())["data"]


def firing(port: int) -> set[str]:
    return {alert["labels"]["alertname"] for alert in asked(port, "alerts")["alerts"] if alert["state"] == "firing"}


def exemplars(port: int) -> set[str]:
    """The traces that Prometheus keeps beside the time of handlings."""
    query = f'controller_runtime_reconcile_time_seconds_bucket{{job="{JOB}"}}'
    now = time.time()
    found = asked(port, "query_exemplars", query=query, start=str(now - 600), end=str(now + 60))
    return {exemplar["labels"]["trace_id"] for series in found for exemplar in series["exemplars"]}


def test_prometheus_takes_the_rules_and_has_an_answer_to_every_query(sandbox: Sandbox, tmp_path: Path) -> None:
    rules, panels = write(tmp_path, job=JOB)
    checked = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    sandbox.apply([config_map(name, namespace=NAMESPACE) for name in ("fine", "broken")])

    collected = Collected()
    operator = Operator(name=JOB, group=GROUP, controllers=[Maps], tracing=collected.provider)
    with serving(operator, sandbox.kubeconfig) as at_work:
        target = f"127.0.0.1:{at_work.process.probes.port}"
        with urllib.request.urlopen(f"http://{target}/metrics", timeout=5) as answer:
            linted = subprocess.run(
                ["promtool", "check", "metrics"], input=answer.read(), capture_output=True, check=False
            )
        assert (linted.returncode, linted.stdout + linted.stderr) == (0, b"")

        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": JOB, "static_configs": [{"targets": [target], "labels": {"pod": "p", "namespace": "n"}}]}
            ],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(configuration), "utf-8")
        port, guard = free_port(), Guard(tmp_path / "guard")
        try:
            guard.popen(
                [
                    "prometheus",
                    f"--config.file={tmp_path}/prometheus.yml",
                    f"--storage.tsdb.path={tmp_path}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--enable-feature=exemplar-storage",
                ],
                log_file=tmp_path / "prometheus.log",
            )
            scraped = f'count_over_time(bonny_stream_synced{{job="{JOB}"}}[1m]) > 3'
            sandbox.eventually(lambda: asked(port, "query", query=scraped)["result"], within_seconds=30)

            for group in asked(port, "rules")["groups"]:
                assert [rule["name"] for rule in group["rules"] if rule["health"] == "err"] == []
            assert asked(port, "alerts")["alerts"] == []
            for panel in json.loads(panels.read_text("utf-8"))["panels"]:
                for query in panel["targets"]:
                    text = query["expr"].replace("$job", JOB).replace("$controller", ".*")
                    found = asked(port, "query", query=text.replace("$__rate_interval", "1m"))["result"]
                    # What is asked "> 0" is trouble, and there is none.
                    assert bool(found) is not text.endswith("> 0"), text
            namespaces = asked(port, "query", query=f'bonny_stream_synced{{job="{JOB}"}}')["result"]
            assert [found["metric"]["watched"] for found in namespaces] == [NAMESPACE]
            assert [found["metric"]["namespace"] for found in namespaces] == ["n"]

            sandbox.apply(config_map("hopeless", namespace=NAMESPACE))
            expected = {"OperatorReconcilesTerminal", "OperatorTaskHalted"}
            sandbox.eventually(lambda: firing(port) == expected, within_seconds=30)
            # It scrapes OpenMetrics, so each handling that it is shown as an example leads to a trace.
            of_traces = {f"{trace_of(span):032x}" for span in collected.spans}
            shown = exemplars(port)
            assert shown
            assert shown <= of_traces
        finally:
            guard.close()
