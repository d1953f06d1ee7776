"""Reference: the real kube-scheduler on a sandbox, under a name of its own, to compare verdicts with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.binaries import obtain
from bonny_dev.sandbox.guard import Guard

NAME = "reference"


@contextmanager
def kube_scheduler(sandbox: Sandbox, folder: Path) -> Iterator[None]:
    """Run kube-scheduler with its default plugins; it looks at every node and tries again after a second.

    It is built when it is not there yet, which takes minutes.
    """
    program = obtain(["kube-scheduler"])["kube-scheduler"]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(sandbox.kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [{"schedulerName": NAME}],
    }
    guard = Guard(folder)
    try:
        file = guard.folder / "config.json"
        file.write_text(json.dumps(config))
        flags = [f"--config={file}", "--secure-port=0", "--authentication-skip-lookup=true"]
        process = guard.popen([str(program), *flags], log_file=guard.folder / "kube-scheduler.log")
        yield
        assert process.poll() is None, (guard.folder / "kube-scheduler.log").read_text()[-2000:]
    finally:
        guard.close()
