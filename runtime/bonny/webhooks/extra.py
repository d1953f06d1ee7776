"""Extra: how webhooks plug into an operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import OptionError
from ..extras import Extra, ExtraRun, Needed
from ..operator import Operator, duplicates
from .admission import Admission
from .names import certificate_rules, is_called
from .settings import VARIABLES, WebhookSettings

if TYPE_CHECKING:
    from ..run.process import Process


class Webhooks(Extra):
    """Admission webhooks, and conversion between versions whose fields differ."""

    settings = WebhookSettings
    variables = VARIABLES

    def check(self, operator: Operator) -> None:
        # Paths carry the name of the class.
        for name, one, other in duplicates((each.__name__, each) for each in operator.of(Admission)):
            raise OptionError(f"two admissions are called {name} ({one.__module__}, {other.__module__}): rename one")

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterator[Needed]:
        for admission in operator.of(Admission):
            for rule in admission.rules:
                yield admission.__name__, None, rule
        if deployed and is_called(operator):
            for where, rules in certificate_rules(operator, namespace=namespace).items():
                for rule in rules:
                    yield "the certificate of the webhooks", where, rule

    def run(self, process: Process) -> ExtraRun | None:
        if not is_called(process.operator):
            return None
        from .serving import WebhookRun  # noqa: PLC0415  an operator without webhooks does not load the server

        return WebhookRun(process)


EXTRA = Webhooks()
