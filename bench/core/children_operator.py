"""The hand-written operator of the tests with stock times, for `restart`: a ConfigMap and a status for each Widget."""

from __future__ import annotations

import sys

from bonny import Controller, Operator
from bonny.main import main
from tests.support.handwritten import WidgetController, operator

WidgetController.reconcile_every = Controller.reconcile_every
WidgetController.timeout = Controller.timeout

if __name__ == "__main__":
    sys.exit(main(Operator(name=operator.name, group=operator.group, controllers=[WidgetController])))
