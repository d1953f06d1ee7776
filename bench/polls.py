"""CPU time of a poll in a test: `sandbox.get` of an object that does not exist.

    python -m bench.polls

`kept` uses the connection and the discovery of the request before, `anew` neither. In milliseconds for each poll.
"""

from __future__ import annotations

import time
from typing import Final

from bench.harness.measure import fine_cpu_seconds
from bonny_dev.sandbox import Sandbox

POLLS: Final = 300


def measured(sandbox: Sandbox, *, anew: bool) -> tuple[float, float]:
    """Milliseconds of CPU for each poll: of this process, and of the API server."""
    server = next(each.pid for each in sandbox.servers if each.name == "kube-apiserver")
    before = time.process_time(), fine_cpu_seconds(server)
    for _ in range(POLLS):
        if anew:
            sandbox.forget()
        sandbox.get("v1", "ConfigMap", "none")
    after = time.process_time(), fine_cpu_seconds(server)
    ours, theirs = ((late - early) / POLLS * 1e3 for early, late in zip(before, after, strict=True))
    return ours, theirs


def main() -> None:
    with Sandbox() as sandbox:
        for name, anew in (("kept", False), ("anew", True)):
            ours, theirs = measured(sandbox, anew=anew)
            print(f"{name}: {ours:.1f} ms in the test, {theirs:.1f} ms in the API server")


if __name__ == "__main__":
    main()
