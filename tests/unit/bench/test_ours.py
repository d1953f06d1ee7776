"""Our contestants: the event loop that they run on, and the times of the garbage collector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.harness.contestants import BONNY, BONNY_UVLOOP, ROOT, bonny
from bench.harness.measure import fine_cpu_seconds

LOOP = """
import asyncio, sys
import bench.harness.ours as ours
from bonny.run.event_loop import loop_factory

def serve(operator, config, cluster):
    with asyncio.Runner(loop_factory=loop_factory(config.event_loop)) as runner:
        print(type(runner.get_loop()).__module__, "uvloop" in sys.modules)

ours.serve = serve
ours.run()
"""
COLLECTIONS = """
import gc, os, pathlib, signal, sys
from bench.harness.collector import Collections

Collections(pathlib.Path(sys.argv[1]))
gc.collect()
gc.freeze()
for _ in range(3):
    gc.collect()
os.kill(os.getpid(), signal.SIGUSR1)
"""


def output_of(program: str, *arguments: str, loop: str = "") -> list[str]:
    paths = os.pathsep.join((str(ROOT / "runtime"), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": paths, "BENCH_LOOP": loop, "BENCH_SERVER": "", "BENCH_ACCOUNT": ""}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(
    ("name", "loop"), [(BONNY, ["asyncio.unix_events", "False"]), (BONNY_UVLOOP, ["uvloop", "True"])]
)
def test_each_variant_has_its_own_event_loop(name: str, loop: list[str]) -> None:
    contestant = bonny("bench.core.bonny_operator", name)

    assert output_of(LOOP, loop=contestant.environment["BENCH_LOOP"]) == loop


def test_collections_count_once_the_modules_are_frozen(tmp_path: Path) -> None:
    output_of(COLLECTIONS, str(tmp_path / "collections"))

    sums = json.loads((tmp_path / "collections").read_text("utf-8"))
    assert sums["full"] == 3
    assert sums["ms of a full one"] > 0
    assert sums["ms"] > 0


def test_a_copy_in_another_folder_runs_its_own_runtime(tmp_path: Path) -> None:
    contestant = bonny("bench.core.bonny_operator", "baseline", folder=tmp_path)

    assert contestant.environment["PYTHONPATH"] == os.pathsep.join((str(tmp_path / "runtime"), str(tmp_path)))
    assert contestant.environment["PYTHONSAFEPATH"] == "1"
    assert contestant.environment["BENCH_LOOP"] == "asyncio"


def test_cpu_time_of_a_process_grows_with_its_work() -> None:
    before, ends = fine_cpu_seconds(os.getpid()), time.process_time() + 0.02
    while time.process_time() < ends:
        pass

    assert fine_cpu_seconds(os.getpid()) - before > 0.01
