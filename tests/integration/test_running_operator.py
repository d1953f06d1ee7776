"""`RunningOperator` on a real API server: what a test that fails shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.running import running

RUNTIME = Path(__file__).parents[2] / "runtime"
FILES = {
    "pyproject.toml": """[project]
name = "refused"
version = "1.0.0"
[tool.bonny]
package = "refused"
image = "registry.example.com/refused"
""",
    "src/refused/__init__.py": "",
    "src/refused/__main__.py": """import sys
from bonny.main import main
from .operator import operator

sys.exit(main(operator))
""",
    "src/refused/operator.py": """from bonny import Axn, Controller, Operator, Owned, Spec, Version


class LampSpec(Spec):
    colour: str = "red"


class Lamp(Version):
    kind = "Lamp"
    version = "v1"
    storage = True
    hub = True
    spec: LampSpec = LampSpec()


class LampController(Controller[Lamp]):
    owns = (Owned("apps/v1", "Deployment"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        pod = {"metadata": {"labels": {"app": axn.spec.colour}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": pod}
        metadata = {"name": axn.key.name}
        axn.register_descendant({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


operator = Operator(name="refused", group="refused.example.com", controllers=[LampController], crds=[Lamp])
""",
}
LAMP = {
    "apiVersion": "refused.example.com/v1",
    "kind": "Lamp",
    "metadata": {"name": "l1"},
    "spec": {"colour": "hunter2"},
}


async def test_the_log_that_a_failed_test_shows_has_the_values_of_a_refused_object(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Regression: it advised `kubectl apply --dry-run=server`, for a child that no person can apply any more."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "bonny").symlink_to(RUNTIME / "bonny")
    async with running(sandbox, tmp_path) as operator:
        await operator.apply(LAMP)
        logged = await operator.until_logged("reconcile failed")
        with pytest.raises(AssertionError, match="the operator's log ends with") as raised:
            await operator.until(LAMP, lambda live: "status" in live, within=0.1)

    assert '"app":"hunter2"}: `selector` does not match template `labels`' in logged["error"]
    assert "hunter2" in str(raised.value).partition("log ends with")[2]
