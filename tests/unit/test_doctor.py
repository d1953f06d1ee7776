"""What `invoke doctor` prints. What it finds: tests/integration/test_doctor.py."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest

from bonny_dev.tasks.doctor import Finding, _report

FINDINGS = (
    Finding("version", True, "Kubernetes v1.36.3"),
    Finding("crd", False, "it differs: apply it", ("--- old", "+++ new", " same")),
)


async def findings(*found: Finding) -> AsyncIterator[Finding]:
    for each in found:
        yield each


async def test_each_finding_is_a_line_with_what_belongs_to_it_below(capsys: pytest.CaptureFixture[str]) -> None:
    assert not await _report(findings(*FINDINGS))

    assert capsys.readouterr().out.splitlines() == [
        "ok    version      Kubernetes v1.36.3",
        "FAIL  crd          it differs: apply it",
        "                   --- old",
        "                   +++ new",
        "                    same",
        "1 of 2 checks failed",
    ]


async def test_when_nothing_is_found_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert await _report(findings(FINDINGS[0]))

    assert capsys.readouterr().out.splitlines()[-1] == "all checks passed"


@pytest.mark.parametrize("no_color", ["", "1"])
async def test_a_terminal_gets_colours_unless_it_asks_for_none(
    no_color: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", no_color)

    await _report(findings(*FINDINGS))

    said = capsys.readouterr().out
    assert ("\033[" in said) == (not no_color)
    assert ("\033[32mok  \033[0m" in said) == ("\033[31m--- old\033[0m" in said) == (not no_color)
