"""Extra: how sharing plugs into an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import OptionError
from ..extras import Extra, ExtraRun, Needed
from ..run.leader import LEASE
from . import Sharding
from .terms import shared_timing

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..operator import Operator
    from ..run.process import Process
    from .process import SharingProcess

VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]


class SharingExtra(Extra):
    """Replicas that share the work, by `Operator(sharding=...)`."""

    def check(self, operator: Operator) -> None:
        if operator.sharding is None:
            return
        if not isinstance(operator.sharding, Sharding):
            raise OptionError(f"sharding of operator {operator.name} is {operator.sharding!r}: use Sharding()")
        if not operator.deploy.leader_election:
            raise OptionError(f"operator {operator.name} has sharding, which needs Deploy(leader_election=True)")
        shared_timing(operator.lease)

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterator[Needed]:
        if operator.sharding is not None:
            yield "sharding", namespace, {"apiGroups": [LEASE.group], "resources": [LEASE.plural], "verbs": VERBS}

    def run(self, process: Process) -> ExtraRun | None:
        from .process import SharingProcess

        return SharingRun(process) if isinstance(process, SharingProcess) else None


class SharingRun(ExtraRun):
    """Probes, metrics and log fields about buckets."""

    def __init__(self, process: SharingProcess) -> None:
        self._shares, self._process = process.shares, process

    def started(self) -> dict[str, object]:
        return {"buckets": self._shares.buckets}

    def problems(self) -> tuple[Sequence[str], Sequence[str]]:
        holding = ", ".join(map(str, self._shares.holding)) or "none"
        return [f"buckets: {holding} of {self._shares.buckets}"], ()

    def families(self) -> Iterable[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        shares = self._shares
        held = GaugeMetricFamily("bonny_bucket_held", "1 while this replica handles the bucket.", labels=["bucket"])
        holding = shares.holding
        for bucket in range(shares.buckets):
            held.add_metric([str(bucket)], float(bucket in holding))
        yield held
        text = "Buckets that this replica gained, gave back, or lost because their lease was not renewed."
        changes = CounterMetricFamily("bonny_bucket_changes", text, labels=["change"])
        for change in ("gained", "given_back", "lost"):
            changes.add_metric([change], getattr(shares, change))
        yield changes
        text = "Objects of other replicas that the API server sent, by resource; role: handled or child."
        foreign = CounterMetricFamily("bonny_foreign_objects", text, labels=["resource", "role"])
        counts: Counter[tuple[str, str]] = Counter()
        for role, streams in (("handled", self._process.primary), ("child", self._process.owned)):
            for stream in streams:
                counts[stream.kind.resource, role] += stream.store.foreign
        for labels, count in counts.items():
            foreign.add_metric(labels, count)
        yield foreign


EXTRA = SharingExtra()
