"""prove: runs the operator of a repository through its lives, prints what was found, and writes it to a file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from .. import files
from ..prove import saved
from ..prove.findings import Report
from ..prove.html import page
from ..prove.options import Options
from ..prove.run import prove

# Prints at once, also into a pipe.
SAY: Final = partial(print, flush=True)
# As a shell reports a process that Ctrl-C ended.
INTERRUPTED: Final = 130


def run(root: Path, options: Options, *, report: str, save: bool = False) -> int:
    """Run it, where a word of `only` may hold several names, with commas between them.

    Returns: the exit code: 1 when something was found. Ctrl-C ends it with the findings so far, else 130.

    Raises: `UsageError` for bad options, and when there is nothing to run.
    """
    if options.minutes < 0:
        raise UsageError(f"--minutes {options.minutes}: use 0, for no limit, or more")
    if options.shrink < 0:
        raise UsageError(f"--shrink {options.shrink}: use 0, to look for no smaller sample, or more seconds")
    if options.fuzz < 0:
        raise UsageError(f"--fuzz {options.fuzz}: use 0, to make no object from the schema, or more")
    target = root / report if report else None
    if target is not None and not target.parent.is_dir():
        raise UsageError(f"--report {report}: there is no folder {target.parent}: create it first")
    words = [word.strip() for each in options.only for word in each.split(",")]
    try:
        found = prove(root, replace(options, only=words), say=SAY)
    except KeyboardInterrupt as interrupted:
        reports = [each for each in interrupted.args if isinstance(each, Report)]
        if not reports:
            raise
        (found,) = reports
    print(*found.lines(), sep="\n")
    if target is not None:
        files.write(target, page(found), mode=0o644)
        print(f"wrote {report}")
    if save:
        print(*saved.save(root, found), sep="\n")
    return INTERRUPTED if found.interrupted and not found.findings else int(bool(found.findings))
