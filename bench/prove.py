"""False alarms of `prove`: it runs on operators without a bug, and counts what it finds.

    python -m bench.prove                        # the generated controller and each example, once
    python -m bench.prove --runs 20 generated    # one of them, 20 times, with another seed each

It ends with code 1 if there was a finding. A run takes one to three minutes on two cores. Each prints its CPU time:
that of all processes, the sandbox and its start included.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bonny_dev import prove
from bonny_dev.sandbox import Sandbox

ROOT: Final = Path(__file__).resolve().parents[1]
GENERATED: Final = "generated"
# Examples that reconcile kinds of their own, where a life goes through a handler; `prove` refuses owners of Namespaces.
EXAMPLES: Final = ("hello", "todo", "dns_record", "finalizer", "hooks", "widget", "cog")
PYPROJECT: Final = """[project]
name = "{name}"
version = "1.0.0"
[tool.bonny]
package = "{package}"
[tool.bonny.prove]
external = ["DNS_URL"]
"""
MAIN: Final = """import sys

from bonny.main import run

sys.exit(run("{package}.operator"))
"""


def example(folder: Path, name: str) -> Path:
    """A repository around an example, in the new folder `folder`."""
    package = f"example_{name}"
    source = folder / "src" / package
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("", encoding="utf-8")
    (source / "__main__.py").write_text(MAIN.format(package=package), encoding="utf-8")
    shutil.copy(ROOT / "examples" / f"{name}.py", source / "operator.py")
    (folder / "pyproject.toml").write_text(PYPROJECT.format(name=name, package=package), encoding="utf-8")
    (folder / "samples").mkdir()
    shutil.copy(ROOT / "examples" / "samples" / f"{name}.yaml", folder / "samples")
    (folder / "vendor").mkdir()
    (folder / "vendor" / "bonny").symlink_to(ROOT / "runtime" / "bonny")
    return folder


def generated(folder: Path) -> Path:
    """A rendered repository with one generated controller, in the new folder `folder`."""
    folder.mkdir()
    settings = folder / "settings.yaml"
    settings.write_text(f"replay_dir: {folder}/replay\ncookiecutters_dir: {folder}/templates\n", encoding="utf-8")
    render = ["cookiecutter", "--no-input", "--config-file", str(settings), "-o", str(folder / "out"), str(ROOT)]
    subprocess.run([sys.executable, "-m", *render], check=True, capture_output=True)
    (project,) = (folder / "out").iterdir()
    command = [sys.executable, "-m", "invoke", "gen-controller", "Widget", "widgets"]
    tools = {**os.environ, "PYTHONPATH": str(ROOT / "runtime")}
    subprocess.run(command, cwd=project, check=True, capture_output=True, env=tools)
    return project


def repository(folder: Path, name: str) -> Path:
    """The repository of a name on the command line, in `folder`."""
    return generated(folder / name) if name == GENERATED else example(folder / name, name)


def cpu_seconds() -> float:
    """CPU seconds of this process, and of those below it that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.prove", description="Counts false alarms of prove.")
    parser.add_argument("names", nargs="*", help=f"default: {GENERATED} {' '.join(EXAMPLES)}")
    parser.add_argument("--runs", type=int, default=1, help="of each; each has another seed (default 1)")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - {GENERATED, *EXAMPLES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("DNS_TOKEN", "none")  # of the example with an external API
    found = 0
    with tempfile.TemporaryDirectory(prefix="bonny-prove-") as folder:
        for name in given.names or (GENERATED, *EXAMPLES):
            root = repository(Path(folder), name)
            for seed in range(given.runs):
                before = cpu_seconds()
                with Sandbox() as sandbox:
                    report = prove.prove(root, prove.Options(seed=seed), say=lambda _: None, sandbox=sandbox)
                found += len(report.findings)
                lines = report.lines() if report.findings else [*report.untried(), report.summary()]
                spent = cpu_seconds() - before
                print(f"{name}, seed {seed}:", *lines, f"{spent:.0f} s of CPU time", sep="\n  ", flush=True)
    print(f"findings: {found}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
