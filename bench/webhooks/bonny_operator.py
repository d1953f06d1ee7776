"""Our contestant: a default and a rule for Widgets. Run as a script."""

from __future__ import annotations

import sys

from bench.harness.ours import run
from bonny import Spec, Version
from bonny.webhooks import Admission, Denied, Review


class WidgetSpec(Spec):
    """The desired state."""

    size: int
    text: str | None = None


class Widget(Version):
    """The kind that both contestants know."""

    kind = "Widget"
    version = "v1"
    hub = True
    storage = True
    spec: WidgetSpec


class WidgetAdmission(Admission[Widget]):
    """The same default and rule as in controller_runtime/webhooks."""

    async def default(self, review: Review[Widget]) -> None:
        if review.spec.text is None:
            review.spec.text = f"size {review.spec.size}"

    async def validate(self, review: Review[Widget]) -> None:
        if review.spec.size % 2:
            raise Denied("must be even", field="spec.size")


if __name__ == "__main__":
    sys.exit(run(WidgetAdmission))
