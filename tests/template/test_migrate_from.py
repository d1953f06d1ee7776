"""`invoke migrate-from kopf --code` in a rendered repository: what it writes passes the repository's own checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HANDLERS = """\
import kopf


@kopf.on.create("websites")
@kopf.on.resume("example.com", "v1", "websites")
def create(spec, name, **_):
    kopf.adopt({})


@kopf.timer("websites.v1.example.com", interval=60)
async def look(patch, **_): ...


@kopf.on.delete("web")
def withdraw(**_): ...


@kopf.on.update("gadgets")
async def change(**_): ...
"""


def invoke(project: Path, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "invoke", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def repository(project: Path) -> Path:
    (project / "handlers.py").write_text(HANDLERS, "utf-8")
    invoke(project, "gen-api", "Website", "websites", "--short-name", "web")
    return project


def test_nothing_is_written_while_a_kind_has_no_class(repository: Path) -> None:
    told = invoke(repository, "migrate-from", "kopf", "--code", "handlers.py", code=2)

    assert "api/ has no class of gadgets: run `invoke gen-api --from-crd` first; nothing was written" in told
    assert not (repository / "src/widgets_operator/controllers/website.py").exists()


def test_a_dry_run_shows_the_handlers_the_files_and_the_kinds_without_a_class(repository: Path) -> None:
    told = invoke(repository, "migrate-from", "kopf", "--code", "handlers.py", "--dry-run")

    assert "handlers.py:4: on.create of websites, create -> reconcile\n" in told
    assert "api/ has no class of gadgets" in told
    assert "+++ b/src/widgets_operator/controllers/website.py" in told
    assert not (repository / "src/widgets_operator/controllers/website.py").exists()


def test_the_controllers_pass_the_checks_of_the_repository(repository: Path) -> None:
    invoke(repository, "gen-api", "Gadget", "gadgets")
    told = invoke(repository, "migrate-from", "kopf", "--code", "handlers.py")

    assert told.splitlines()[-2:] == [
        "wrote src/widgets_operator/controllers/gadget.py",
        "wrote src/widgets_operator/controllers/website.py",
    ]
    text = (repository / "src/widgets_operator/controllers/website.py").read_text("utf-8")
    assert "    reconcile_every = 60.0\n" in text
    assert "    async def reconcile(self, axn: Axn[Website]) -> None:\n" in text
    assert "        Takes the place of create, look in handlers.py.\n" in text
    assert "    def finalize(self, axn: Axn[Website]) -> None:\n" in text
    assert '        raise NotImplementedError("port withdraw of handlers.py")\n' in text
    for command in (("ruff", "check", "src"), ("ruff", "format", "--check", "src"), ("mypy", "src")):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=repository, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    invoke(repository, "manifest")
    assert invoke(repository, "migrate-from", "kopf", "--code", "handlers.py").endswith(
        "nothing to do: all files exist\n"
    )
