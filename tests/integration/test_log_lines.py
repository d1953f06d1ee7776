"""Log lines of an operator at work: each tells which handling it belongs to."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.things import config_map

OPERATOR = """
import logging
import sys

from bonny import Controller, Kind, Operator
from bonny.main import main

log = logging.getLogger("users.code")


class Maps(Controller):
    resource = Kind("v1", "ConfigMap", namespace="lines")

    def reconcile(self, axn):
        log.info("from the user")
        if axn.tries == 0:
            raise RuntimeError("not yet")


sys.exit(main(Operator(name="lines", group="example.com", controllers=[Maps]), ["run"]))
"""


def test_all_lines_of_one_handling_share_an_id_that_no_other_has(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lines"}})
    sandbox.apply([config_map(name, namespace="lines", secret="s3cr3t") for name in ("a", "b")])
    (tmp_path / "serving_lines.py").write_text(textwrap.dedent(OPERATOR))
    at_work = start_operator([sys.executable, str(tmp_path / "serving_lines.py")])

    def told() -> list[dict[str, str]]:
        whole = [line for line in at_work.text.splitlines(keepends=True) if line.endswith("\n")]
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return [line for line in lines if "reconcile_id" in line]

    sandbox.eventually(lambda: sum(line["message"] == "from the user" for line in told()) == 4)
    at_work.stop()

    lines = told()
    handlings = {line["reconcile_id"]: line["object"] for line in lines}
    assert sorted(handlings.values()) == ["lines/a", "lines/a", "lines/b", "lines/b"]
    for line in lines:
        assert (line["controller"], line["object"]) == ("Maps", handlings[line["reconcile_id"]])
        assert line["reasons"] == "added"
    failed = [line for line in lines if line["message"] == "reconcile failed"]
    assert len({line["reconcile_id"] for line in failed}) == 2
    assert "s3cr3t" not in at_work.text
