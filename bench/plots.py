"""Plots: the pictures of docs/benchmarks.md and README.md, from results of a bench.

    python -m bench.plots .bench/core-*.json    take over these results, workload by workload, and draw them
    python -m bench.plots                       draw again

`bench/results/` keeps the medians of the published results. docs/images gets two pictures of each bench, for light and
for dark pages.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.core.__main__ import SUITE as CORE
from bench.harness import plot
from bench.harness.command import Suite
from bench.harness.contestants import ROOT
from bench.harness.report import medians
from bench.pipeline.__main__ import SUITE as PIPELINE
from bonny.errors import UsageError

__all__ = ["IMAGES", "RESULTS", "SUITES", "draw", "main", "take_over"]

SUITES: Final = {suite.name: suite for suite in (CORE, PIPELINE)}
RESULTS: Final = ROOT / "bench" / "results"
IMAGES: Final = ROOT / "docs" / "images"


def take_over(file: Path) -> None:
    """Replace the published medians by a results file of a bench, such as `core-<time>.json`.

    Raises: `UsageError` for results of another number of objects than the pictures name.
    """
    suite = SUITES[file.name.partition("-")[0]]
    published: dict[str, Any] = json.loads(_published(suite).read_text("utf-8"))
    measured = json.loads(file.read_text("utf-8"))["workloads"]
    for result in measured:
        name = result["workload"]
        if name not in {panel.workload for panel in suite.panels}:
            continue
        if result["objects"] != suite.workloads[name].objects:
            raise UsageError(f"{file} has {name} with {result['objects']} objects: publish the default number only")
        published[name] = medians(result["rounds"])
    _published(suite).write_text(json.dumps(published, indent=2) + "\n", "utf-8")


def draw(suite: Suite, folder: Path = IMAGES) -> list[Path]:
    """Draw the published medians of a bench; returns the pictures."""
    known: plot.Medians = json.loads(_published(suite).read_text("utf-8"))
    return plot.write(folder / f"bench-{suite.name}", suite.about, suite.panels, known)


def _published(suite: Suite) -> Path:
    return RESULTS / f"{suite.name}.json"


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.plots", description="Pictures of published results.")
    parser.add_argument("results", nargs="*", type=Path, help="files that a bench wrote into .bench")
    try:
        for file in parser.parse_args(words).results:
            take_over(file)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    for suite in SUITES.values():
        for picture in draw(suite):
            print(picture.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
