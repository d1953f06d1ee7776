"""The credentials files: what they hold and who may read them."""

from __future__ import annotations

import base64
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from bonny_dev import files
from bonny_dev.sandbox.kubeconfig import kubeconfig, signing_key


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


def test_two_signing_keys_differ() -> None:
    assert signing_key() != signing_key()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is the judge here")
def test_a_signing_key_is_a_valid_p256_key(tmp_path: Path) -> None:
    key = files.write(tmp_path / "sa.key", signing_key())

    shown = subprocess.run(["openssl", "ec", "-in", key, "-text", "-noout"], capture_output=True, text=True, check=True)

    assert "prime256v1" in shown.stdout
