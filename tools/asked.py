"""Asked: the command line of tools that make a table of what an API server says."""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Server", "from_options", "lines"]

T = TypeVar("T")


class Server:
    """A running API server."""

    def __init__(self, url: str, *, token: str, ca_file: Path | None) -> None:
        self._url = url
        self._token = token
        self._context = ssl.create_default_context(cafile=str(ca_file)) if ca_file else ssl.create_default_context()

    def get(self, path: str, *, accept: str = "application/json") -> Any:
        """The decoded answer. Raises: `urllib.error.URLError`."""
        headers = {"Accept": accept, "Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._url + path, headers=headers)
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            return json.load(answer)


def from_options(description: str, ask: Callable[[Server], T]) -> T:
    """Ask the server that the command line names, or one of our own."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--server", help="URL of a running API server; default: start one")
    parser.add_argument("--token", default="", help="bearer token for --server")
    parser.add_argument("--ca-file", type=Path, help="certificate of --server")
    options = parser.parse_args()
    if options.server:
        return ask(Server(options.server, token=options.token, ca_file=options.ca_file))
    from bonny_dev.sandbox import Sandbox  # noqa: PLC0415  (only this branch needs a control plane)

    with Sandbox() as sandbox:
        return ask(Server(sandbox.url, token=sandbox.token, ca_file=sandbox.ca_file))


def lines(table: Mapping[str, Iterable[str]]) -> str:
    """A JSON object of objects: sorted, one line an entry, so that a change reads as what Kubernetes changed."""
    blocks = [
        f'  "{name}": {{\n' + ",\n".join(f"    {entry}" for entry in table[name]) + "\n  }" for name in sorted(table)
    ]
    return "{\n" + ",\n".join(blocks) + "\n}\n"
