"""Packages that an operator imports and its image would lack: each is named, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bonny import Deploy, Kind, Operator
from bonny.errors import UsageError
from bonny.webhooks import Admission
from bonny_dev.project import Project
from bonny_dev.tasks import quality
from bonny_dev.tasks.imports import lacking, lacking_for_certificates

PYPROJECT = """\
[project]
name = "doors-operator"
version = "0.1.0"
dependencies = [DEPENDENCIES]
[project.optional-dependencies]
dev = ["pytest", "cryptography>=46"]
webhooks = ["cryptography>=46,<51"]
[tool.bonny]
package = "doors"
extras = [EXTRAS]
"""


class Reviews(Admission[Any]):
    resource = Kind("v1", "ConfigMap")

    def validate(self, review: object) -> None:
        """Not called."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("src/doors/api", "vendor/bonny"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def found(root: Path, code: str, *, dependencies: str = '"pydantic>=2"', extras: str = "") -> list[str]:
    text = PYPROJECT.replace("DEPENDENCIES", dependencies).replace("EXTRAS", extras)
    (root / "pyproject.toml").write_text(text, "utf-8")
    (root / "src/doors/api/door.py").write_text(code, "utf-8")
    return lacking(Project.at(root))


def test_the_sentence_names_the_file_the_module_and_the_extra(root: Path) -> None:
    (sentence,) = found(root, "from cryptography.hazmat.primitives import hashes\n")
    assert sentence == (
        "src/doors/api/door.py imports cryptography, which the image lacks: "
        'add "webhooks" to extras in [tool.bonny] in pyproject.toml'
    )


def test_a_package_of_no_extra_goes_to_the_dependencies_by_its_own_name(root: Path) -> None:
    """A module has another name than its package."""
    assert found(root, "import os, yaml\n") == [
        'src/doors/api/door.py imports yaml, which the image lacks: add "pyyaml" to dependencies in pyproject.toml'
    ]


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("import yaml\n", {"dependencies": '"PyYAML >=6,<7"'}),
        ("import cryptography\n", {"extras": '"webhooks"'}),
        ("import pydantic_core\n", {}),  # comes with pydantic
        ("import os, asyncio\nfrom importlib.metadata import version\n", {}),
        ("import bonny\nimport doors\nfrom doors.api import door\nfrom . import door\nfrom .. import api\n", {}),
        ("import there_is_no_such_package\n", {}),
        ("import yaml\ndef unfinished(\n", {}),
        ("import os\n", {"extras": '"there-is-no-such-extra"'}),
        ("try:\n    import yaml\nexcept ImportError:\n    yaml = None\n", {}),
        ("def read() -> None:\n    import yaml\n", {}),
        ("if TYPE_CHECKING:\n    import yaml\n", {}),
        ("import yaml\n", {"dependencies": '"there-is-no-such-package"'}),
        ("import yaml\n", {"dependencies": '"there-is-no-such-package; sys_platform == \'other\'", "pyyaml"'}),
    ],
)
def test_what_the_image_has_or_may_do_without_is_not_named(root: Path, code: str, options: dict[str, str]) -> None:
    assert found(root, code, **options) == []


@pytest.mark.parametrize("parts", [[], [Reviews]])
def test_an_image_that_cannot_make_the_certificates_of_its_servers_is_named(
    root: Path, parts: list[type[Admission[Any]]]
) -> None:
    """Regression: with /metrics over TLS only the log of the leader said it, after the update of the Deployment."""

    def lacking_with(deploy: Deploy, extras: str = "") -> list[str]:
        (root / "pyproject.toml").write_text(PYPROJECT.replace("DEPENDENCIES", "").replace("EXTRAS", extras), "utf-8")
        operator = Operator(name="doors-operator", group="example.com", controllers=parts, deploy=deploy)
        return [*lacking_for_certificates(Project.at(root), operator)]

    (sentence,) = lacking_with(Deploy(secure_metrics=True))
    assert sentence == (
        "the certificates of webhooks and of secure metrics are made with cryptography, which the image lacks: add "
        '"webhooks" to extras in [tool.bonny] in pyproject.toml, or write Deploy(certificates="cert-manager")'
    )
    assert lacking_with(Deploy(secure_metrics=True), extras='"webhooks"') == []
    assert lacking_with(Deploy(secure_metrics=True, certificates="cert-manager")) == []
    assert len(lacking_with(Deploy())) == len(parts)


def test_a_lock_that_would_lack_a_package_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the image was made, and ended at its start."""
    monkeypatch.setattr(quality, "_run", lambda *_: 0)
    assert found(root, "import yaml\n")
    with pytest.raises(UsageError, match=r"^src/doors/api/door\.py imports yaml, which the image lacks: add "):
        quality.run_lock(Project.at(root))
    assert quality.run_checks(root) == 1
    assert found(root, "import os\n") == []
    assert (quality.run_lock(Project.at(root)), quality.run_checks(root)) == (0, 0)
