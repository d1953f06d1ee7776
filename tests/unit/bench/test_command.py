"""The command line of a bench, as far as it starts no contestant."""

from __future__ import annotations

import shutil
import tomllib
from functools import partial
from pathlib import Path

import pytest

from bench.check import __main__ as check
from bench.core.__main__ import SUITE as CORE
from bench.harness import command, contestants
from bench.harness.command import Suite, Workload
from bench.harness.contestants import CONTROLLER_RUNTIME, KUBE_RS, NAMES, Contestant, Prepared, prepare
from bench.harness.plot import Panel
from bench.harness.report import Goal, Outcome
from bench.pipeline.__main__ import SUITE as PIPELINE
from bench.scale.__main__ import SUITE as SCALE
from bench.scheduler.__main__ import SUITE as SCHEDULER
from bench.webhooks.__main__ import SUITE as WEBHOOKS

nothing = Outcome("events", 1, [], [])

SUITES = pytest.mark.parametrize("suite", [CORE, PIPELINE], ids=lambda suite: suite.name)


@SUITES
def test_what_has_no_profile_is_named_with_what_has_one(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (other, *_) = [name for name, workload in suite.workloads.items() if not workload.profilable]

    assert suite.main(["--profile", "--workload", other]) == 2

    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("--profile takes --workload ")
    assert sentence.endswith(f", not {other}")


@pytest.mark.parametrize("suite", [CORE, PIPELINE, SCALE, SCHEDULER, WEBHOOKS], ids=lambda suite: suite.name)
def test_an_unknown_workload_is_refused(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        suite.main(["--workload", "everything"])

    assert "invalid choice: 'everything'" in capsys.readouterr().err


@SUITES
def test_every_contestant_of_the_command_line_has_a_maker(suite: Suite) -> None:
    assert set(suite.makers) == set(NAMES)


def test_a_contestant_whose_compiler_is_missing_does_not_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", {"go": "/bin/go"}.get)
    makers = {name: partial(Contestant, name, ()) for name in NAMES}

    prepared = prepare(makers)

    assert {contestant.name for contestant in prepared.contestants} == {*NAMES} - {KUBE_RS}
    assert prepared.absent == {KUBE_RS: "kube-rs did not take part: cargo is not on PATH"}
    assert prepare(makers, [CONTROLLER_RUNTIME]).absent == {}


def test_pictures_are_drawn_of_the_default_numbers_of_objects_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = Outcome("events", 1, [{"bonny": {"CPU": 1.0}}], [])
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(Suite, "_run", lambda *_: outcome)
    workloads = {"events": Workload(lambda _: outcome, 1, with_peers=False)}
    suite = Suite(name="example", about="", makers={}, workloads=workloads, panels=[Panel("events", "CPU", "CPU, s")])

    for words in (["--quick"], ["--objects", "5"]):
        suite.main(words)
        assert not [*tmp_path.glob(".bench/*.svg")]
    suite.main([])
    assert len([*tmp_path.glob(".bench/example-*.svg")]) == 2


def test_contestants_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[str] = []

    def run(_: Suite, __: str, ___: object, prepared: Prepared) -> Outcome:
        started.extend(contestant.name for contestant in prepared.contestants)
        return nothing

    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(Suite, "_run", run)
    makers = {name: partial(Contestant, name, ()) for name in ("bonny", "kopf", "example")}
    suite = Suite(name="example", about="", makers=makers, workloads={"events": Workload(lambda _: nothing, 1)})

    assert suite.main(["--contestant", "bonny", "--contestant", "example"]) == 0

    assert started == ["bonny", "example"]


@pytest.mark.parametrize(("limit", "strict", "code"), [(1.0, True, 0), (0.5, True, 1), (0.5, False, 0)])
def test_a_missed_goal_is_an_error_of_a_strict_suite_only(
    limit: float, strict: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = Outcome("events", 1, [{"bonny": {"CPU": 1.0}}], [Goal(metric="CPU", limit=limit)])
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(Suite, "_run", lambda *_: outcome)
    workloads = {"events": Workload(lambda _: outcome, 1, with_peers=False)}

    assert Suite(name="example", about="", makers={}, workloads=workloads, strict=strict).main([]) == code


def test_a_check_without_the_baselines_commit_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_BASELINE", "0" * 40)

    assert check.main() == 2

    assert capsys.readouterr().err == f"this clone has no commit {'0' * 40}: run git fetch --unshallow\n"


def test_the_crate_is_locked_to_the_public_index() -> None:
    lock = tomllib.loads((contestants.CRATE / "Cargo.lock").read_text("utf-8"))

    sources = {package["source"] for package in lock["package"] if "source" in package}
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}
