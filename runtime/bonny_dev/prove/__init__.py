"""Prove: lives through an operator's samples while it is killed, its requests fail and its watches are late.

    from bonny_dev import prove

    def test_the_operator_survives() -> None:
        prove.check(Path(__file__).parents[1], prove.Options(minutes=5))

You need it to find out whether an operator repairs what a crash or a lost answer leaves. `invoke prove` is the same in
a terminal. It runs in its own sandbox, in no other cluster.
"""

from .findings import Finding as Finding
from .findings import Report as Report
from .options import Options as Options
from .run import check as check
from .run import prove as prove
