"""External: an HTTP service that an operator calls, as a store of JSON documents; its calls can fail, too.

`PUT` and `PATCH` store a document under its path, `POST` stores one under a new path below its own, `GET` reads and
`DELETE` removes one. It stands for any API that names its records by URL. The operator learns its address from the
environment variables that `external` in `[tool.bonny.prove]` of pyproject.toml lists.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Server(ThreadingHTTPServer):
    """A server that says nothing about clients that were killed."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: connections are reset on purpose."""


class External:
    """The service. `records` are the documents by path; a `FaultProxy` in front of it makes calls fail."""

    token = ""

    def __init__(self, *, ca_file: Path, folder: Path) -> None:
        """`ca_file` and `folder` belong to the sandbox: the proxy needs them, and uses neither for this service."""
        self.ca_file, self.folder = ca_file, folder
        self.url = ""
        self.records: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._made = 0
        self._before: dict[str, Any] = {}
        self._looks_back = False

    def look_back(self) -> None:
        """Answer the next GET with the state before the last change, as a replica does that lags behind."""
        self._looks_back = True

    def reset(self) -> None:
        """Forget all documents."""
        with self._lock:
            self.records, self._made, self._before, self._looks_back = {}, 0, {}, False

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Carry out one call; returns the status and the document."""
        with self._lock:
            records = self.records
            if method != "GET":
                self._before = dict(records)
            elif self._looks_back:
                records, self._looks_back = self._before, False
            match method:
                case "PUT":
                    status = 200 if path in self.records else 201
                    self.records[path] = body
                    return status, body
                case "POST":
                    self._made += 1
                    self.records[f"{path}/{self._made}"] = body
                    return 201, {"path": f"{path}/{self._made}"}
                case "PATCH" if path in self.records:
                    self.records[path] = {**self.records[path], **body}
                    return 200, self.records[path]
                case "DELETE" if path in self.records:
                    del self.records[path]
                    return 204, None
                case "GET" if path in records:
                    return 200, records[path]
                case "GET" if below := {each: item for each, item in records.items() if each.startswith(path)}:
                    return 200, below
        return 404, None

    @contextmanager
    def serving(self) -> Iterator[External]:
        """Serve on a free port of this machine meanwhile."""
        external = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65_537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                size = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(size) if size else b"null"
                try:
                    body = json.loads(text)
                except ValueError:
                    body = text.decode(errors="replace")
                status, document = external.answer(self.command, self.path.partition("?")[0], body)
                answer = b"" if document is None else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  the name in the base class
                """Write nothing."""

        with _Server(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}"
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="external service", daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()
