"""The command line of a bench, as far as it starts no contestant."""

from __future__ import annotations

import pytest

from bench.core.__main__ import SUITE as CORE
from bench.harness.command import Suite
from bench.harness.contestants import NAMES
from bench.pipeline.__main__ import SUITE as PIPELINE
from bench.scheduler.__main__ import SUITE as SCHEDULER

SUITES = pytest.mark.parametrize("suite", [CORE, PIPELINE], ids=lambda suite: suite.name)


@SUITES
def test_what_has_no_profile_is_named_with_what_has_one(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (other, *_) = [name for name, workload in suite.workloads.items() if not workload.profilable]

    assert suite.main(["--profile", "--workload", other]) == 2

    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("--profile takes --workload ")
    assert sentence.endswith(f", not {other}")


@pytest.mark.parametrize("suite", [CORE, PIPELINE, SCHEDULER], ids=lambda suite: suite.name)
def test_an_unknown_workload_is_refused(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        suite.main(["--workload", "everything"])

    assert "invalid choice: 'everything'" in capsys.readouterr().err


@SUITES
def test_every_contestant_of_the_command_line_has_a_maker(suite: Suite) -> None:
    assert set(suite.makers) == set(NAMES)
