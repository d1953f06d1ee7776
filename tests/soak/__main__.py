"""Command line of the soak: random faults at random times, and what must be so afterwards.

    .venv/bin/invoke soak --minutes 10 --seed 42 --objects 2000

Exit codes: 0 when every check passed, 1 when one failed, 130 after Ctrl-C. Nothing is left behind in any case.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from .soak import Options, Report, run

SHOWN: Final = 10
_BEGAN: Final = time.monotonic()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    say(f"seed {options.seed}; again: {_command(options)}")
    try:
        report = run(options, say=say)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except (AssertionError, UsageError) as error:
        say(f"failed: {error}\nagain: {_command(options)}")
        return 1
    print(_told(options, report), flush=True)
    return 0 if report.passed else 1


def say(line: str) -> None:
    """One line of progress, with the time since the start."""
    seconds = int(time.monotonic() - _BEGAN)
    print(f"{seconds // 60:3}:{seconds % 60:02}  {line}", flush=True)


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=Options.minutes, help="how long faults strike")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000), help="default: any")
    parser.add_argument("--objects", type=int, default=Options.objects)
    parser.add_argument("--rest-seconds", type=float, default=Options.rest_seconds, help="time without any write")
    parser.add_argument("--kill-operator", action="store_true", help="kill the operator, too, now and then")
    parser.add_argument("--log", type=Path, help="where to keep the operator's log; default: nowhere")
    return Options(**vars(parser.parse_args(arguments)))


def _command(options: Options) -> str:
    words = f".venv/bin/invoke soak --minutes {options.minutes:g} --seed {options.seed} --objects {options.objects}"
    return f"{words} --kill-operator" if options.kill_operator else words


def _told(options: Options, report: Report) -> str:
    """The report as Markdown, ready for a page."""
    lines = [
        "",
        f"{options.minutes:g} min, {options.objects:,} objects, seed {options.seed}.",
        *(f"{name.capitalize()}: {figures}." for name, figures in report.facts.items()),
        "",
        "| what must hold | figures | |",
        "|---|---|---|",
        *(f"| {check.name} | {check.figures} | {'pass' if check.passed else 'FAIL'} |" for check in report.checks),
    ]
    for check in report.checks:
        if check.problems:
            lines += ["", f"{check.name}: {len(check.problems)} problems", *(f"  {p}" for p in check.problems[:SHOWN])]
    if not report.passed:
        lines += ["", f"again: {_command(options)}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
