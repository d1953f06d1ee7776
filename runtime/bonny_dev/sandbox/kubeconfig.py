"""Kubeconfig: the credentials files of a sandbox, and the key that its ServiceAccount tokens are signed with."""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path
from string import Template
from typing import Final

# The order of the NIST P-256 curve: a private key is a number below it (FIPS 186-5).
P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# RFC 5915: SEQUENCE { version 1, OCTET STRING of 32 bytes, [0] the curve's name }; the public key is optional in it.
EC_KEY_HEAD: Final = bytes.fromhex("303102010104 20")
EC_KEY_TAIL: Final = bytes.fromhex("a00a06082a8648ce3d030107")


def kubeconfig(*, url: str, ca: bytes, user: str, token: str, namespace: str = "default") -> str:
    """The text of a kubeconfig with one context, `sandbox`, and everything embedded, so that the file can be copied."""
    template = Template(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    texts = {name: json.dumps(text) for name, text in (("url", url), ("user", user), ("token", token))}
    return template.substitute(texts, ca=base64.b64encode(ca).decode(), namespace=json.dumps(namespace))


def signing_key() -> str:
    """A fresh P-256 private key as PEM; made by hand: the standard library has no keys and openssl may be missing."""
    number = secrets.randbelow(P256_ORDER - 1) + 1
    der = EC_KEY_HEAD + number.to_bytes(32, "big") + EC_KEY_TAIL
    return f"-----BEGIN EC PRIVATE KEY-----\n{base64.encodebytes(der).decode()}-----END EC PRIVATE KEY-----\n"
