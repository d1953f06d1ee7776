"""The console of a `run-local`: other terminals of the project find it as long as it runs, and nobody else does."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from bonny_dev.inside.local import Answering, announced, answering

SERVER = "https://127.0.0.1:6443"
CONSOLE = Answering("http://127.0.0.1:1", "secret", SERVER)


def test_it_is_found_while_it_runs_and_only_for_its_own_cluster(tmp_path: Path) -> None:
    with announced(tmp_path, CONSOLE):
        assert answering(tmp_path, SERVER) == CONSOLE
        assert answering(tmp_path, "https://production.example.com") is None
    assert answering(tmp_path, SERVER) is None
    assert not (tmp_path / ".sandbox" / "run-local").exists()


def test_only_its_user_can_read_the_token_and_git_ignores_the_file(tmp_path: Path) -> None:
    (tmp_path / ".sandbox").mkdir()
    (tmp_path / ".sandbox" / "run-local").write_text("from an earlier version", "utf-8")
    (tmp_path / ".sandbox" / "run-local").chmod(0o644)
    with announced(tmp_path, CONSOLE):
        assert stat.S_IMODE((tmp_path / ".sandbox" / "run-local").stat().st_mode) == 0o600
        assert (tmp_path / ".sandbox" / ".gitignore").read_text("utf-8") == "*\n"


def test_the_file_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".sandbox").mkdir()
    (tmp_path / ".sandbox" / "run-local").write_text(json.dumps(CONSOLE._asdict()), "utf-8")
    assert answering(tmp_path, SERVER) is None
    assert not (tmp_path / ".sandbox" / "run-local").exists()


def test_of_two_in_one_project_the_first_is_found(tmp_path: Path) -> None:
    with announced(tmp_path, CONSOLE):
        with announced(tmp_path, CONSOLE._replace(token="other")):
            assert answering(tmp_path, SERVER) == CONSOLE
        assert answering(tmp_path, SERVER) == CONSOLE


def test_a_project_without_a_run_or_with_a_broken_file_has_none(tmp_path: Path) -> None:
    assert answering(tmp_path, SERVER) is None
    assert not (tmp_path / ".sandbox").exists()
    with announced(tmp_path, CONSOLE):
        (tmp_path / ".sandbox" / "run-local").write_text("{", "utf-8")
        assert answering(tmp_path, SERVER) is None
