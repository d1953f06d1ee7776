"""Dashboards: what `invoke dashboards` writes: alert rules for Prometheus and a dashboard for Grafana.

Both ask only for metrics that an operator has under /metrics.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from ..manifest.monitoring import ALERTS, DASHBOARD, monitoring_file

__all__ = ["FILES", "write"]

FILES: Final = (ALERTS, DASHBOARD)
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
            path.write_text(monitoring_file(path.name, job=job), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to ({error.strerror}): name another folder by --out") from None
    return written
