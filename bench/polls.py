"""CPU time of a poll in a test: `sandbox.get` of an object that does not exist.

    python -m bench.polls

`kept` uses the connection and the discovery of the request before, `new` neither. In milliseconds for each poll.
"""

from __future__ import annotations

import time
from typing import Final

from bench.harness.measure import fine_cpu_seconds
from bonny_dev.sandbox import Sandbox

POLLS: Final = 300


def measured(sandbox: Sandbox, *, new: bool) -> tuple[float, float]:
    """Milliseconds of CPU for each poll: of this process, and of the API server."""
    server = next(each.pid for each in sandbox.servers if each.name == "kube-apiserver")
    before = time.process_time(), fine_cpu_seconds(server)
    for _ in range(POLLS):
        if new:
            sandbox.forget()
        sandbox.get("v1", "ConfigMap", "none")
    after = time.process_time(), fine_cpu_seconds(server)
    ours, theirs = ((late - early) / POLLS * 1e3 for early, late in zip(before, after, strict=True))
    return ours, theirs


def main() -> None:
    with Sandbox() as sandbox:
        for name, new in (("kept", False), ("new", True)):
            ours, theirs = measured(sandbox, new=new)
            print(f"{name}: {ours:.1f} ms in the test, {theirs:.1f} ms in the API server")


if __name__ == "__main__":
    main()
