"""Statements of the pages that the code can contradict: rooms, numbers, and the lint that they promise."""

from __future__ import annotations

import json
import pkgutil
import re
import tomllib
from pathlib import Path
from types import ModuleType

import bonny.engine
import bonny_dev

ROOT = Path(__file__).parents[2]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = ARCHITECTURE.partition("## Rooms\n")[2].partition("\n## ")[0]
TABLE, DEVELOPMENT = ROOMS.split("The rooms of `bonny_dev`")


def rooms_of(package: ModuleType) -> set[str]:
    """Its public modules and packages."""
    return {module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")}


def test_the_table_of_rooms_has_each_room_of_the_runtime_and_no_other() -> None:
    cells = [row.split("|")[1] for row in TABLE.splitlines() if row.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell.replace("`.`", "."))]
    engine = {f"engine.{name}" for name in rooms_of(bonny.engine)}
    assert sorted(listed) == sorted((rooms_of(bonny) - {"engine"}) | engine)


def test_the_page_names_each_room_of_the_developer_tools() -> None:
    named = set(re.findall(r"`(\w+)`", DEVELOPMENT))
    assert rooms_of(bonny_dev) - named == set()


def test_the_cpu_time_of_a_created_object_is_the_measured_time() -> None:
    page = (ROOT / "docs" / "production.md").read_text("utf-8")
    (milliseconds,) = re.findall(r"([0-9.]+) ms per created object", page)
    measured = json.loads((ROOT / "bench" / "results" / "pipeline.json").read_text("utf-8"))["create"]["bonny"]
    assert float(milliseconds) == round(measured["CPU us/object"] / 1000, 1)


def test_the_core_imports_no_clock_and_lint_checks_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (core,) = (each for each in contracts if each.get("source_modules") == ["bonny.core"])
    assert {"time", "datetime", "asyncio", "socket"} <= set(core["forbidden_modules"])
