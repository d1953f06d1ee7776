"""Kubeconfig: the credentials files of a sandbox."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from string import Template


def kubeconfig(*, url: str, ca: bytes, user: str, token: str, namespace: str = "default") -> str:
    """The text of a kubeconfig with one context, `sandbox`, and everything embedded, so that the file can be copied."""
    template = Template(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    texts = {name: json.dumps(text) for name, text in (("url", url), ("user", user), ("token", token))}
    return template.substitute(texts, ca=base64.b64encode(ca).decode(), namespace=json.dumps(namespace))
