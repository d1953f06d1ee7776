"""kube-scheduler: writes its configuration and becomes it, so that its figures are those of this process. A script."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from bonny.resource import Resource

from .world import NAME

# What the default profile scores by beside LeastAllocated.
OTHER_SCORES: Final = ("ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeResourcesBalancedAllocation",
                       "PodTopologySpread", "TaintToleration", "VolumeBinding")  # fmt: skip


def configuration(kubeconfig: str, *, lean: bool) -> Resource:
    """Its defaults, but for the scheduler's name, a client without limits, and (`lean`) one score alone."""
    profile: Resource = {"schedulerName": NAME}
    if lean:
        profile["plugins"] = {"score": {"disabled": [{"name": name} for name in OTHER_SCORES]}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }


def main() -> None:
    file = Path(os.environ["BENCH_ACCOUNT"]).with_name("kube-scheduler.json")
    lean = bool(os.environ["BENCH_LEAN"])
    file.write_text(json.dumps(configuration(os.environ["KUBECONFIG"], lean=lean)), "utf-8")
    program = os.environ["BENCH_PROGRAM"]
    os.execv(program, [program, f"--config={file}", "--secure-port=0", "--authentication-skip-lookup=true"])


if __name__ == "__main__":
    main()
