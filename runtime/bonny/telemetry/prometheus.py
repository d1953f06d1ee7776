"""Prometheus: metric families of prometheus-client, made of values that an operator has anyway.

A table of `Row`s lists the metrics of a sort of subjects. Values are read at the scrape; the first one imports this
module, because prometheus-client takes 30 ms to import.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias, TypeVar

import prometheus_client
from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from ..core.meters import BOUNDS, Histogram

END: Final = b"# EOF\n"

S = TypeVar("S")
K = TypeVar("K", bound=tuple[str, ...])
Labels: TypeAlias = tuple[str, ...]
Row: TypeAlias = tuple[Callable[..., Metric], str, str, Callable[[S], float | Histogram]]
"""`counter`, `gauge` or `histogram`; name; help; and how the value is read from a subject."""

log = logging.getLogger("bonny.telemetry")


def counter(name: str, text: str, labels: Labels, samples: Mapping[K, float]) -> Metric:
    """A counter; `samples` are by the values of `labels`, here and in the other two."""
    return _filled(CounterMetricFamily(name, text, labels=labels), samples)


def gauge(name: str, text: str, labels: Labels, samples: Mapping[K, float]) -> Metric:
    """A gauge."""
    return _filled(GaugeMetricFamily(name, text, labels=labels), samples)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, samples: Mapping[K, float]) -> Metric:
    for values, value in samples.items():
        family.add_metric(values, value)
    return family


def histogram(name: str, text: str, labels: Labels, samples: Mapping[K, Histogram]) -> Metric:
    """A histogram. Its exemplars have the label names that OpenTelemetry uses; only OpenMetrics shows them."""
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, sample in samples.items():
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        for number, (bound, count) in enumerate(zip((*BOUNDS, "+Inf"), accumulate(sample.counts), strict=True)):
            if number in sample.exemplars:
                seconds, (trace_id, span_id, at) = sample.exemplars[number]
                buckets.append((str(bound), count, Exemplar({"trace_id": trace_id, "span_id": span_id}, seconds, at)))
            else:
                buckets.append((str(bound), count))
        family.add_metric(values, buckets, sample.sum)
    return family


def each(rows: Iterable[Row[S]], labels: Labels, subjects: Mapping[K, S]) -> Iterator[Metric]:
    """A family for each of `rows`, with a sample for each of `subjects`."""
    for family, name, text, read in rows:
        yield family(name, text, labels, {values: read(subject) for values, subject in subjects.items()})


@dataclass(frozen=True, slots=True)
class _Collector:
    families: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


def exposition(families: Iterable[Metric], accept: str = "") -> tuple[bytes, str]:
    """Write `families` and the default registry of prometheus-client, which holds the process's and users' metrics.

    Returns the text and its content type: OpenMetrics where the header `Accept` names it, else version 0.0.4.
    """
    encode, content_type = choose_encoder(accept)
    ours = encode(_Collector(families))
    try:
        registered = encode(prometheus_client.REGISTRY)
    except Exception:
        log.exception("the metrics of prometheus-client cannot be read")
        registered = encode(prometheus_client.PROCESS_COLLECTOR)
    return ours.removesuffix(END) + registered, content_type
