"""The credentials files: what they hold and who may read them."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import yaml

from bonny_dev import files
from bonny_dev.sandbox.kubeconfig import kubeconfig


def test_a_kubeconfig_names_server_authority_user_token_and_namespace() -> None:
    text = kubeconfig(url="https://127.0.0.1:6443", ca=b"PEM\n", user="123", token="a.b-c", namespace="shop")

    config = yaml.safe_load(text)

    assert config["current-context"] == "sandbox"
    assert config["contexts"] == [
        {"name": "sandbox", "context": {"cluster": "sandbox", "user": "123", "namespace": "shop"}}
    ]
    assert config["users"] == [{"name": "123", "user": {"token": "a.b-c"}}]
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM\n"


def test_private_files_are_private_also_where_others_could_read_before(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o644)

    assert files.write(path, "new") == path

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]
