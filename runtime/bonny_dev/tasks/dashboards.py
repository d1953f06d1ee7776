"""Dashboards: writes the files of `invoke dashboards`: alert rules for Prometheus and a dashboard for Grafana.

Both ask only for metrics that an operator has under /metrics.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

from .. import files
from ..manifest.monitoring import ALERTS, DASHBOARD, monitoring_file

FILES: Final = (ALERTS, DASHBOARD)
# It stands in a label's value, within quotes, in YAML and in JSON.
JOB: Final = re.compile(r"[\w./:-]+", re.ASCII)


def write(folder: Path, *, job: str) -> list[Path]:
    """Write both files to `folder` and return their paths; `job` is the name of the scrape job of the operator.

    Raises: `UsageError` for an impossible job, or when a file cannot be written.
    """
    if not JOB.fullmatch(job):
        raise UsageError(f"the job is {job!r}: use letters, digits and . / : - _, as Prometheus shows it under Targets")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [files.write(folder / name, monitoring_file(name, job=job), mode=0o644) for name in FILES]
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to ({error.strerror}): name another folder by --out") from None
