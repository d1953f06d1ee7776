"""Uses: the extras that modules import, and labels for the namespace of a sandbox, so that an operator that selects
namespaces by labels watches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bonny.core.selector import hold, requirements_of
from bonny_dev import uses, wheel
from bonny_dev.uses import absent_import, labels_for


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("team=a", {"team": "a"}),
        ("team in (b,a),!archived,stage", {"team": "b", "stage": "true"}),
        ("stage,stage=prod,team!=x", {"stage": "prod"}),
    ],
)
def test_labels_are_found_that_a_selector_selects(selector: str, labels: dict[str, str]) -> None:
    assert labels_for(selector) == labels
    assert hold(requirements_of(selector), labels)


@pytest.mark.parametrize("selector", ["", "!archived", "team in (a),team notin (a)", "size>5"])
def test_a_selector_without_such_labels_has_none(selector: str) -> None:
    assert labels_for(selector) == {}


def test_the_sources_are_read_once_however_many_modules_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: they were read once more for each module, at each start of pytest."""
    (tmp_path / "vendor/bonny/cron").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    for number in range(20):
        (tmp_path / f"src/a{number}.py").write_text("from bonny.cron import Cron\n", "utf-8")
    (tmp_path / "src/last.py").write_text("import bonny.webhooks\n", "utf-8")
    reads: list[dict[str, bytes]] = []

    def read() -> dict[str, bytes]:
        reads.append(wheel.sources())
        return reads[-1]

    monkeypatch.setattr(uses, "sources", read)

    assert str(absent_import(tmp_path)).startswith("src/last.py needs the extra webhooks")
    assert len(reads) < 4
