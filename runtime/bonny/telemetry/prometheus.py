"""Prometheus: figures in the text formats that it scrapes: version 0.0.4, and OpenMetrics, which has exemplars.

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
from operator import attrgetter
from typing import Any, Final, TypeAlias

from ..core.meters import BOUNDS, Histogram

__all__ = ["END", "Family", "Format", "Metric", "Type", "each", "exposition", "foreign", "process_families"]

END: Final = "# EOF\n"
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_STARTED: Final = time.time()

log = logging.getLogger("bonny.telemetry")


class Format(StrEnum):
    """Both formats, by their content types."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    @classmethod
    def accepted(cls, accept: str) -> Format:
        """The format for a scraper that sends this `Accept`: OpenMetrics where it is named, as in all peers."""
        named = {part.partition(";")[0].strip() for part in accept.split(",")}
        return cls.OPEN if cls.OPEN.partition(";")[0] in named else cls.TEXT


class Type(StrEnum):
    """What a figure may do."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


Metric: TypeAlias = tuple[str, Type, str, str]
"""Name, type, help, and where its subject has it."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `samples` are figures by the values of `labels`: a `Histogram` each for one of that type."""

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[Any, float | Histogram] = field(default_factory=dict)


def each(
    metrics: Iterable[Metric], labels: tuple[str, ...], subjects: Mapping[tuple[str, ...], object]
) -> Iterator[Family]:
    """A family for each of `metrics`, with a sample for each subject."""
    for name, kind, told, path in metrics:
        figure = attrgetter(path)
        yield Family(name, kind, told, labels, {values: figure(subject) for values, subject in subjects.items()})


def exposition(families: Iterable[Family], form: Format = Format.TEXT) -> str:
    """The families as a text; that of OpenMetrics still needs its last line."""
    return "".join(f"{line}\n" for family in families for line in _lines(family, form))


def _lines(family: Family, form: Format) -> Iterator[str]:
    # There `_total` is a part of the samples of a counter, and not of its name.
    named = family.name.removesuffix("_total") if form is Format.OPEN else family.name
    yield f"# HELP {named} {family.help}"
    yield f"# TYPE {named} {family.type}"
    for values, sample in family.samples.items():
        pairs = [f'{label}="{value.translate(_ESCAPED)}"' for label, value in zip(family.labels, values, strict=True)]
        labels = f"{{{','.join(pairs)}}}" if pairs else ""
        if isinstance(sample, Histogram):
            for place, (bound, count) in enumerate(zip((*BOUNDS, "+Inf"), accumulate(sample.counts), strict=True)):
                within = ",".join((*pairs, f'le="{bound}"'))
                exemplar = _exemplar(sample, place) if form is Format.OPEN else ""
                yield f"{family.name}_bucket{{{within}}} {count}{exemplar}"
            yield f"{family.name}_sum{labels} {sample.sum}"
            yield f"{family.name}_count{labels} {sample.count}"
        else:
            yield f"{family.name}{labels} {float(sample):.17g}"


def _exemplar(histogram: Histogram, place: int) -> str:
    """With the names that OpenTelemetry gives to its labels."""
    if place not in histogram.exemplars:
        return ""
    seconds, (trace_id, span_id, at) = histogram.exemplars[place]
    return f' # {{trace_id="{trace_id}",span_id="{span_id}"}} {seconds} {at:.3f}'


def foreign(form: Format = Format.TEXT) -> str:
    """What users registered with prometheus-client, if they use it: its own figures of the process are among that."""
    client = sys.modules.get("prometheus_client")
    if client is None:
        return ""
    try:
        # The end comes after all, and only once.
        text: str = client.exposition.choose_encoder(form)[0](client.REGISTRY).decode().removesuffix(END)
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
