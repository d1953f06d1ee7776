"""Prometheus: figures in the text format that it scrapes (version 0.0.4).

You need it to write figures that you have. Your own metrics: use prometheus-client, as anywhere; what is registered
there is on /metrics, too.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final

from ..core.meters import BOUNDS, Histogram

__all__ = ["CONTENT_TYPE", "Family", "Type", "exposition", "foreign", "process_families"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_STARTED: Final = time.time()

log = logging.getLogger("bonny.telemetry")


class Type(StrEnum):
    """What a figure may do."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `samples` are figures by the values of `labels`: a `Histogram` each for one of that type."""

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[Any, float | Histogram] = field(default_factory=dict)


def exposition(families: Iterable[Family]) -> str:
    """The families as a text."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.type}"
    for values, sample in family.samples.items():
        named = [f'{label}="{value.translate(_ESCAPED)}"' for label, value in zip(family.labels, values, strict=True)]
        labels = f"{{{','.join(named)}}}" if named else ""
        if isinstance(sample, Histogram):
            for bound, count in zip((*BOUNDS, "+Inf"), accumulate(sample.counts), strict=True):
                within = ",".join((*named, f'le="{bound}"'))
                yield f"{family.name}_bucket{{{within}}} {count}"
            yield f"{family.name}_sum{labels} {sample.sum}"
            yield f"{family.name}_count{labels} {sample.count}"
        else:
            yield f"{family.name}{labels} {float(sample):.17g}"


def foreign() -> str:
    """What users registered with prometheus-client, if they use it: its own figures of the process are among that."""
    client = sys.modules.get("prometheus_client")
    if client is None:
        return ""
    try:
        text: str = client.generate_latest().decode()
    except Exception:
        # Our own figures are needed all the more while somebody's collector fails.
        log.exception("the metrics of prometheus-client cannot be read")
        return ""
    return text


def process_families() -> Iterator[Family]:
    """Of this process, by the names that all clients of Prometheus use; what the system does not tell is left out."""
    yield Family("process_cpu_seconds_total", Type.COUNTER, "CPU time, in seconds.", (), {(): time.process_time()})
    yield Family("process_start_time_seconds", Type.GAUGE, "When it started, in Unix time.", (), {(): _STARTED})
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  read at each scrape
            pages = int(file.read().split()[1])
        figures: dict[tuple[str, ...], float] = {(): pages * os.sysconf("SC_PAGE_SIZE")}
    except OSError:
        return
    yield Family("process_resident_memory_bytes", Type.GAUGE, "Memory in use, in bytes.", (), figures)
