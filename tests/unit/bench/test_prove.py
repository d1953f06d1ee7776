"""`python -m bench.prove`: its repositories hold what `prove` needs, and a wrong name is refused."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from bench import prove as bench
from bonny import Kind

# Of one namespace, where no life takes place; of Pods, which no kubelet runs; of Namespaces, which `prove` refuses.
LEFT_OUT = {"the_operator", "my_operator", "descendants"}


def of_own_kinds() -> set[str]:
    """The examples with a controller for a kind of their own."""
    names = [path.stem for path in (bench.ROOT / "examples").glob("*.py")]
    operators = {name: importlib.import_module(f"examples.{name}").operator for name in names}
    return {
        name
        for name, operator in operators.items()
        if any(not isinstance(kind, Kind) for each in operator.controllers for kind in each.resources())
    }


def test_every_example_that_reconciles_a_kind_of_its_own_is_tried() -> None:
    assert set(bench.EXAMPLES) == of_own_kinds() - LEFT_OUT


@pytest.mark.parametrize("name", bench.EXAMPLES)
def test_an_example_becomes_a_repository_with_a_sample(tmp_path: Path, name: str) -> None:
    root = bench.repository(tmp_path, name)

    assert (root / "samples" / f"{name}.yaml").read_text("utf-8").startswith(("apiVersion:", "#"))
    assert f'package = "example_{name}"' in (root / "pyproject.toml").read_text("utf-8")
    assert (root / "src" / f"example_{name}" / "operator.py").is_file()
    assert (root / "vendor" / "bonny" / "__init__.py").is_file()


def test_a_wrong_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main(["nothing"])

    assert "unknown: nothing" in capsys.readouterr().err
