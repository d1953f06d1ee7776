"""Dashboards: what `invoke dashboards` writes: alert rules for Prometheus and a dashboard for Grafana.

Both ask only for metrics that an operator has under /metrics.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Final

from ..errors import UsageError

__all__ = ["FILES", "write"]

FILES: Final = ("alerts.yaml", "dashboard.json")
# It stands in a label's value, within quotes, in YAML and in JSON.
JOB: Final = re.compile(r"[\w./:-]+", re.ASCII)


def write(folder: Path, *, job: str) -> list[Path]:
    """Write both to `folder`; `job` is the name of the scrape job that sees the operator. Returns: what was written.

    Raises: `UsageError` for an impossible job, or when a file cannot be written.
    """
    if not JOB.fullmatch(job):
        raise UsageError(f"the job is {job!r}: use letters, digits and . / : - _, as Prometheus shows it under Targets")
    written = [folder / name for name in FILES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in written:
            text = files("bonny.telemetry").joinpath(path.name).read_text(encoding="utf-8")
            path.write_text(text.replace("OPERATOR", job), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to ({error.strerror}): name another folder by --out") from None
    return written
