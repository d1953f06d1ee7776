"""External systems: an operator is killed while a fake of its API makes what it asked for, and is started again."""

from __future__ import annotations

import asyncio
import inspect
import shutil
from pathlib import Path
from typing import Final

import pytest

from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.running import RunningOperator, running
from examples import dns_record
from tests.support.dns import page
from tests.unit.test_how_to import HOW_TO

ROOT: Final = Path(__file__).parents[2]
PYPROJECT: Final = """[project]
version = "1.0.0"
[tool.bonny]
package = "records"
"""
MAIN: Final = """import sys
from bonny.main import main
from records.operator import operator

sys.exit(main(operator))
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is rendered around an operator, as far as it takes to run one."""
    package = tmp_path / "src" / "records"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, "utf-8")
    (package / "__main__.py").write_text(MAIN, "utf-8")
    shutil.copy(ROOT / "examples" / "dns_record.py", package / "operator.py")
    (package / "__init__.py").touch()
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "bonny").symlink_to(ROOT / "runtime" / "bonny")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    return tmp_path


@pytest.mark.parametrize("name", ["DnsRecordSpec", "DnsRecordStatus", "DnsRecord", "DnsRecordController", "setting"])
def test_the_page_shows_the_example(name: str) -> None:
    assert inspect.getsource(getattr(dns_record, name)) in (HOW_TO / "external-systems.md").read_text("utf-8")


async def test_a_crash_makes_no_second_record(sandbox: Sandbox, repository: Path) -> None:
    """The test of the page: the record that was made before the crash is found after it."""
    async with page().fake_dns() as dns, running(sandbox, repository) as operator:
        await page().test_a_crash_makes_no_second_record(dns, operator)
        assert dns.requests.count("PUT") == 1
        assert dns.requests.count("GET") >= 2


async def test_an_operator_that_a_test_ended_is_started_again_to_remove_what_is_left(
    sandbox: Sandbox, repository: Path
) -> None:
    """Regression: the objects had a finalizer, and nobody was there to remove it."""
    async with page().fake_dns() as dns:
        async with running(sandbox, repository) as operator:
            await operator.apply({**page().record(), "metadata": {"name": "left"}})
            await asyncio.wait_for(dns.made.wait(), 20)
            await operator.kill()
            assert operator.process.returncode == -9
            assert "stopping" not in operator.log()
        assert dns.records == {}


async def test_restart_stops_what_runs_and_takes_the_variables_of_the_moment(
    sandbox: Sandbox, repository: Path
) -> None:
    async with page().fake_dns(), running(sandbox, repository) as operator:
        first = operator.process
        async with page().fake_dns() as other:
            await operator.restart()
            assert (first.returncode, operator.process.poll()) == (0, None)
            shop = await operator.apply({**page().record(), "metadata": {"name": "shop"}})
            await asyncio.wait_for(other.made.wait(), 20)
            await operator.delete(shop)
            await operator.until_gone(shop)
            assert isinstance(operator, RunningOperator)
            assert other.records == {}
