"""The operator as a process on a real API server, with the permissions of its manifest and no others."""

from bonny_dev.testing import RunningOperator


async def test_it_becomes_ready_and_ends_in_good_order(running_operator: RunningOperator) -> None:
    assert await running_operator.stop() == 0
