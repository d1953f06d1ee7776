"""Builders for the sandbox's unit tests: programs that only tell a version, and a machine of which nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bonny_dev.sandbox import download

ASSETS = ("ETCD", "KUBE_APISERVER", "KUBE_CONTROLLER_MANAGER")
Program = Callable[..., Path]


@pytest.fixture
def program() -> Program:
    """Writes a script that answers `--version` like etcd or a Kubernetes program."""

    def write(path: Path, version: str = "") -> Path:
        version = version or ("3.6.16" if path.name == "etcd" else "1.36.3")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho 'Kubernetes v{version}'\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No variables, an empty cache, no Internet, no Go; returns the cache's folder of our version."""
    for variable in ("KUBEBUILDER_ASSETS", *(f"TEST_ASSET_{name}" for name in ASSETS)):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(download, "INDEX", "http://127.0.0.1:9/index.yaml")  # the discard port: refused at once
    monkeypatch.setattr(download, "OFFICIAL", "http://127.0.0.1:9")
    monkeypatch.setattr("bonny_dev.sandbox.build.shutil.which", lambda name: None)
    return tmp_path / "cache" / "bonny" / "kubernetes" / "v1.36.3"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a Go on PATH that "builds" programs which only tell a version, or fails; returns the list of its calls."""

    def write(*, goversion: str = "go1.26.1", code: int = 0) -> Path:
        path = tmp_path / "go" / "bin" / "go"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"""#!/bin/sh
if [ "$1" = env ]; then echo {goversion}; exit 0; fi
echo "$@" >> {tmp_path}/builds
test -s go.mod && test -s go.sum || exit 7
while [ "$1" != -o ]; do shift; done
if [ {code} != 0 ]; then echo "dial tcp: lookup the.proxy: no such host"; exit {code}; fi
case $2 in */etcd) version=3.6.16;; *) version=1.36.3;; esac
printf "#!/bin/sh\\necho $version\\n" > "$2"
""",
            encoding="utf-8",
        )
        path.chmod(0o755)
        monkeypatch.setattr("bonny_dev.sandbox.build.shutil.which", lambda name: str(path))
        return tmp_path / "builds"

    return write
