"""The hand-written operator of the tests, with a period of 10 s: 1,000 objects left alone."""

import sys

from bonny import Operator
from bonny.main import main
from tests.support.handwritten import WidgetController, operator

WidgetController.reconcile_every = 10.0

if __name__ == "__main__":
    sys.exit(main(Operator(name=operator.name, group=operator.group, controllers=[WidgetController])))
