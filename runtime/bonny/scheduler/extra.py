"""Extra: how schedulers plug into an operator. It is loaded for operators that have some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..extras import Extra, ExtraRun, Needed
from ..operator import EVENTS, Operator
from .scheduler import Scheduler

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..engine.stream import Stream
    from ..kinds import Kind
    from ..run.process import Process
    from .server import SchedulerServer


class Schedulers(Extra):
    """Classes that choose nodes for pods."""

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterator[Needed]:
        for scheduler in operator.of(Scheduler):
            for rule in (*scheduler.all_rules(), EVENTS):
                yield scheduler.name, "", rule

    def run(self, process: Process) -> ExtraRun | None:
        return SchedulerRun(process)


class SchedulerRun(ExtraRun):
    """The schedulers of one operator, with the streams that they share."""

    def __init__(self, process: Process) -> None:
        from .server import SchedulerServer
        from .streams import SchedulerStreams

        self._process = process
        self._followed: dict[Stream, None] = {}
        streams = SchedulerStreams(self._stream)
        self.servers = [
            SchedulerServer(scheduler(), process.client, streams=streams, recorder=process.recorder)
            for scheduler in process.operator.of(Scheduler)
        ]
        self.lifespans = [server.scheduler for server in self.servers]

    def relisted(self) -> Iterable[Stream]:
        # A standby's streams may have fallen silent without notice.
        return self._followed

    def term(self) -> Iterable[SchedulerServer]:
        return self.servers

    def started(self) -> dict[str, object]:
        return {"schedulers": ",".join(server.scheduler.name for server in self.servers)}

    def families(self) -> Iterator[Metric]:
        from .metrics import families

        return families(self.servers)

    def _stream(self, kind: Kind) -> Stream:
        """The stream of all namespaces, even if fewer are watched: pods of the others take room on nodes, too."""
        stream = self._process.streams.of(kind, None)
        self._followed[stream] = None
        return stream


EXTRA = Schedulers()
