"""Soak of replicas that share: random faults, then a check of every write against the log of grants.

    python -m tests.soak.sharing --minutes 10 --seed 7

Replicas are killed, suspended, added and stopped; the operator is updated replica by replica to another version;
sharing is switched off and on; Leases of buckets are deleted. The audit log of the API server has each write with its
revision in etcd, which orders writes of all kinds exactly. Checked afterwards:

- each write of a replica follows its own grant of the bucket, without a grant of another replica in between;
- handlers of one object never ran at the same time, by a journal of their begins and ends on one clock;
- all objects reach the last content.

Exit codes: 0 when all checks passed, 1 when one failed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from bonny.sharding.assignment import bucket_of
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from tests.support.processes import OperatorProcess
from tests.support.sharing import BUCKETS, LEASE, Replicas, command, settings

NAME: Final = "soaked"
OBJECTS: Final = 48
TIMING: Final = "6/4/1"
# The longest suspension: twice a lease duration.
LONGEST: Final = 12.0
REST_SECONDS: Final = 120.0
POLICY: Final = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create, update, patch]
  resources:
  - {group: "", resources: [configmaps]}
  - {group: coordination.k8s.io, resources: [leases]}
- level: None
"""


@dataclass(eq=False)
class Replica:
    """One process, and when it did not run."""

    pod: str
    operator: OperatorProcess
    shares: bool
    died: float = float("inf")
    """When it was killed."""

    frozen: list[tuple[float, float]] = field(default_factory=list)


class Soak:
    """Replicas of one operator on a sandbox, and the faults."""

    def __init__(self, sandbox: Sandbox, folder: Path, seed: int) -> None:
        self.faults: Counter[str] = Counter()
        self.all: list[Replica] = []
        self._random, self._folder, self._sandbox = random.Random(seed), folder, sandbox
        self._guards: list[Guard] = []
        self._number = self._version = 0
        self.journal = folder / "journal"
        self.journal.touch()
        self.shared = Replicas(NAME, sandbox, self._start, self.journal)

    def close(self) -> None:
        """End all replicas."""
        for guard in self._guards:
            guard.close()

    def _start(self, pod: str, **more: str) -> OperatorProcess:
        self._guards.append(Guard(self._folder / pod))
        environment = {**settings(NAME, pod, self.journal), "TEST_TIMING": TIMING, "TEST_SECONDS": "0.2", **more}
        kubeconfig = self._sandbox.kubeconfig
        return OperatorProcess(self._guards[-1], command(), kubeconfig=kubeconfig, cwd=None, settings=environment)

    # --- replicas -----------------------------------------------------------------------------------------------------

    @property
    def running(self) -> list[Replica]:
        return [each for each in self.all if each.operator.process.poll() is None]

    def join(self, *, shares: bool = True) -> Replica:
        """Start a replica of the present version."""
        pod = f"r{len(self.all)}"
        more = {"TEST_VERSION": f"1.{self._version}.0-{pod}"} | ({} if shares else {"TEST_BUCKETS": "0"})
        self.all.append(Replica(pod, self._start(pod, **more), shares))
        return self.all[-1]

    def leave(self, replica: Replica) -> None:
        """SIGTERM, as a rolling update and a scale-down send it."""
        replica.operator.process.terminate()
        replica.operator.process.wait(60)

    def keep(self, number: int) -> None:
        """Replace replicas that ended by themselves, as a Deployment does."""
        while len(self.running) < number:
            self.join()

    def change(self) -> None:
        """Give some objects new content."""
        self._number += 1
        for number in self._random.sample(range(OBJECTS), 6):
            self._apply(number)

    def _apply(self, number: int) -> None:
        metadata = {"namespace": "default", "name": f"{NAME}-{number}", "labels": {"of": NAME}}
        data = {"number": str(self._number)}
        self._sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    # --- faults -------------------------------------------------------------------------------------------------------

    def strike(self) -> str:
        """One fault; returns its name."""
        one = self._random.choice(self.running)
        match self._random.choices(
            ["kill", "suspend", "join", "leave", "update", "single", "delete"], [6, 6, 3, 3, 2, 1, 2]
        )[0]:
            case "suspend":
                self._suspend(one)
                name = "suspend"
            case "join" if len(self.running) < 5:
                self.join()
                name = "join"
            case "leave" if len(self.running) > 2:
                self.leave(one)
                name = "leave"
            case "update":
                self._update()
                name = "rolling update"
            case "single":
                self._switch_off_and_on()
                name = "sharing off and on"
            case "delete":
                bucket = self._random.randrange(BUCKETS)
                self._sandbox.delete(*LEASE, f"{NAME}-bucket-{bucket}")
                name = "lease deleted"
            case _:
                one.died = boot_seconds()
                one.operator.process.kill()
                one.operator.process.wait()
                name = "kill -9"
        self.keep(3)
        self.faults[name] += 1
        return name

    def _suspend(self, one: Replica) -> None:
        one.operator.process.send_signal(signal.SIGSTOP)
        began = boot_seconds()
        self._work_for(self._random.uniform(1.0, LONGEST))
        one.frozen.append((began, boot_seconds()))
        one.operator.process.send_signal(signal.SIGCONT)

    def _update(self) -> None:
        """Old and new version beside each other, one by one."""
        self._version += 1
        for old in self.running:
            self.join()
            self._work_for(2.0)
            self.leave(old)

    def _switch_off_and_on(self) -> None:
        """A rolling update to an operator that does not share, and back."""
        for shares in (False, True):
            before = self.running
            self.join(shares=shares)
            self.join(shares=shares)
            self._work_for(2.0)
            for old in before:
                self.leave(old)
            # The shared Lease ends by itself, after twice the duration.
            Sandbox.eventually(partial(self._is_held, shared=shares), within_seconds=REST_SECONDS)
            self._work_for(2.0)

    def _is_held(self, *, shared: bool) -> bool:
        """Whether replicas that share, or one leader, hold the operator's own Lease."""
        self.change()
        lease = self._sandbox.get(*LEASE, NAME)
        holder = "" if lease is None else str(lease["spec"].get("holderIdentity") or "")
        return bool(holder) and holder.startswith("shared-") == shared

    def _work_for(self, seconds: float) -> None:
        """Change objects for so long, about three times a second: a span of load, in which nothing is waited for."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.change()
            time.sleep(0.3)

    def run(self, minutes: float) -> None:
        """Faults for so long, then rest until all objects have the last content."""
        self._number = 1
        for number in range(OBJECTS):
            self._apply(number)
        self.keep(3)
        ends = time.monotonic() + 60.0 * minutes
        while time.monotonic() < ends:
            self._work_for(self._random.uniform(2.0, 8.0))
            print(f"{self.strike()}; {len(self.running)} replicas", flush=True)
        self._number += 1
        for number in range(OBJECTS):
            self._apply(number)
        content = {str(self._number): OBJECTS}
        Sandbox.eventually(lambda: self.shared.children() == content, within_seconds=REST_SECONDS)


# --- checks -----------------------------------------------------------------------------------------------------------


def boot_seconds() -> float:
    """The clock of the journal."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def changes(folder: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each write that the API server stored: its revision, the pod that sent it, and the object; in any order.

    The API server begins another file after each 100 MB, which is a quarter of an hour.
    """
    seen: set[int] = set()
    for line in (line for file in folder.glob("audit*.log") for line in file.read_text("utf-8").splitlines()):
        event = json.loads(line)
        stored = event.get("responseObject") or {}
        if event["stage"] != "ResponseComplete" or event["responseStatus"]["code"] not in (200, 201):
            continue
        revision = int(stored["metadata"]["resourceVersion"])
        sender = re.match(rf"{NAME}/\S+-(r\d+)", event.get("userAgent", ""))
        # An apply that changes nothing is answered with the revision of an earlier write.
        if sender and revision not in seen:
            seen.add(revision)
            yield revision, sender[1], stored


def check_writes(folder: Path) -> tuple[int, int, list[str]]:
    """Count the writes of children and the grants; list the writes by a replica after another one got the bucket."""
    writes, grants, late = 0, 0, []
    holders: dict[str, str] = {}
    for revision, pod, stored in sorted(changes(folder), key=lambda each: each[0]):
        name = stored["metadata"]["name"]
        if stored["kind"] == "Lease":
            if holder := stored["spec"].get("holderIdentity"):
                grants += holders.get(name) != holder
                holders[name] = holder
            continue
        uid = stored["metadata"]["labels"]["bonny.dev/owner-uid"]
        own = holders.get(NAME, "")
        bucket = f"{NAME}-bucket-{bucket_of(uid, BUCKETS)}"
        holder = holders.get(bucket, "") if own.startswith("shared-") else own
        writes += 1
        if holder.partition("_")[0] != pod:
            late.append(f"revision {revision}: {pod} wrote {name}, and {bucket} belonged to {holder or 'nobody'}")
    return writes, grants, late


def check_handlers(journal: Path, replicas: Sequence[Replica]) -> tuple[int, list[str], list[str]]:
    """Count the handlers; list these that ran beside another one of their object, and apart from them the ones that
    were suspended when the other one began."""
    by_pid = {each.operator.process.pid: each for each in replicas}
    begun: dict[tuple[int, str], float] = {}
    spans: list[tuple[float, float, int, str]] = []
    for line in journal.read_text("utf-8").splitlines():
        at, pid, what, uid, _ = line.split()
        key = int(pid), uid
        if what == "begin":
            begun[key] = float(at)
        else:
            spans.append((begun.pop(key), float(at), *key))
    for (pid, uid), at in begun.items():
        replica = by_pid[pid]
        # It ended with its process: when that was killed, or by its watchdog at the end of a suspension.
        stops = [replica.died, *(began for began, _ in replica.frozen if began >= at)]
        spans.append((at, max(at, min(stops)), pid, uid))
    overlaps, thawed = [], []
    last: dict[str, tuple[float, float, int, str]] = {}
    for span in sorted(spans):
        before = last.get(span[3])
        if before is not None and span[0] < before[1]:
            frozen = by_pid[before[2]].frozen
            suspended = any(began <= span[0] <= ended for began, ended in frozen) and before[2] != span[2]
            text = f"{span[3]}: {before[0]:.3f} to {before[1]:.3f} in {before[2]}, {span[0]:.3f} in {span[2]}"
            (thawed if suspended else overlaps).append(text)
        if before is None or span[1] > before[1]:
            last[span[3]] = span
    return len(spans), overlaps, thawed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, check, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.sharing")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-sharing-") as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(POLICY, "utf-8")
        flags = [f"--audit-policy-file={folder}/policy.yaml", f"--audit-log-path={folder}/audit.log"]
        with Sandbox(apiserver_flags=flags) as sandbox:
            soak = Soak(sandbox, folder, options.seed)
            try:
                soak.run(options.minutes)
                reached = True
            except AssertionError as error:
                print(error)
                reached = False
            finally:
                soak.close()
        writes, grants, late = check_writes(folder)
        handlers, overlaps, thawed = check_handlers(soak.journal, soak.all)
        codes = Counter(each.operator.process.returncode for each in soak.all)
        print(f"faults: {', '.join(f'{count} {what}' for what, count in soak.faults.most_common())}")
        print(f"processes by exit code: {dict(codes)}")
        print(
            f"{writes} writes of children and {grants} grants; writes after another replica got the bucket: {len(late)}"
        )
        print(
            f"{handlers} handlers; overlapping: {len(overlaps)}, with their last step after a suspension: {len(thawed)}"
        )
        print(f"all objects reached the last content: {'yes' if reached else 'NO'}")
        print(*late[:10], *overlaps[:10], *thawed[:10], sep="\n")
    return int(bool(late or overlaps or not reached or not writes))


if __name__ == "__main__":
    sys.exit(main())
