"""Breaking: a repository around one of the controllers in tests/broken, for `prove`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BROKEN = ROOT / "tests" / "broken"
PYPROJECT = """[project]
name = "lamps"
version = "1.0.0"
[tool.bonny]
package = "{package}"
image = "registry.example.com/lamps"
[tool.bonny.prove]
external = ["LAMPS_URL"]
"""
MAIN = """import sys

from bonny.main import run

sys.exit(run("{package}.operator"))
"""
OPERATOR = """from bonny import Controller, Operator
from bonny.extras import Part

from . import controllers, lamp

found = [
    each
    for each in vars(controllers).values()
    if isinstance(each, type) and issubclass(each, Controller | Part) and each.__module__ == controllers.__name__
]
steps = getattr(controllers, "STEPS", None)
more = {"steps": steps} if steps else {}
operator = Operator(name="lamps", group=lamp.GROUP, controllers=found, crds=[lamp.Lamp], **more)
"""
SAMPLE = """apiVersion: broken.example.com/v1
kind: Lamp
metadata:
  name: desk
spec:
  colour: red
  size: 2
  note: beside the window
"""


def repository(folder: Path, name: str, *, package: str = "") -> Path:
    """An operator's repository in `folder` with the controller `name`; each has a package of its own name.

    Its sample is a Lamp, and the objects of `<name>.yaml` beside the controller, if there are any.
    """
    package = package or f"lamps_{name}"
    source = folder / "src" / package
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("", "utf-8")
    (source / "__main__.py").write_text(MAIN.format(package=package), "utf-8")
    (source / "operator.py").write_text(OPERATOR, "utf-8")
    shutil.copy(BROKEN / f"{name}.py", source / "controllers.py")
    shutil.copy(BROKEN / "lamp.py", source)
    (folder / "pyproject.toml").write_text(PYPROJECT.format(package=package), "utf-8")
    (folder / "samples").mkdir()
    others = BROKEN / f"{name}.yaml"
    more = f"---\n{others.read_text('utf-8')}" if others.exists() else ""
    (folder / "samples" / "desk.yaml").write_text(SAMPLE + more, "utf-8")
    (folder / "vendor").mkdir()
    (folder / "vendor" / "bonny").symlink_to(ROOT / "runtime" / "bonny")
    return folder


def release(root: Path, tag: str) -> None:
    """Commit what lies in `root`, and tag it."""
    shutil.copy(ROOT / "<<cookiecutter.operator_slug>>" / "tasks.py", root)
    author = ("-c", "user.name=A Developer", "-c", "user.email=developer@example.com")
    for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", tag), ("tag", tag)):
        subprocess.run(["git", *author, *command], cwd=root, check=True)


def edit(path: Path, before: str, after: str) -> None:
    """Replace a text that occurs in a file."""
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")
