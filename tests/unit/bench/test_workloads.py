"""The bench of workloads: it compares the medians with their limits."""

from __future__ import annotations

import pytest

from bench.workloads import LIMITS, MEMORY, START, report

ROW = {"reset, s": 9.0, START: 1.0, MEMORY: 180.0}


def test_measurements_within_their_limits_end_with_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([ROW]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "workloads start, s                1.00 [1.00..1.00] limit 6",
        "memory of workloads, MB         180.00 [180.00..180.00] limit 250",
    ]


@pytest.mark.parametrize("name", LIMITS)
def test_a_median_above_its_limit_ends_with_code_1(capsys: pytest.CaptureFixture[str], name: str) -> None:
    above = {**ROW, name: LIMITS[name] + 0.5}

    assert report([above, ROW, above]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "missed" in line]
    assert line.startswith(name)
    assert report([above, ROW, ROW]) == 0
