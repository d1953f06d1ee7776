"""Proxy: the HTTP proxy for the API server, by the rules of Go's net/http, as kubectl and client-go, and its tunnel.

HTTPS_PROXY (HTTP_PROXY for a server without TLS), unless NO_PROXY lists the host: by name, which includes all names
below it, by address or by network (10.0.0.0/8), each with or without a port, or `*`. Loopback addresses never use one.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from ..client.http.connection import HttpConnection, WireRequest
from ..client.http.dial import PORTS, Address
from ..errors import UsageError


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """The URL of the proxy for `server`, or None. Raises: `UsageError` when it is not the URL of an HTTP proxy."""
    asked = urlsplit(server)
    variable = f"{asked.scheme.upper()}_PROXY"
    proxy = environ.get(variable) or environ.get(variable.lower())
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not proxy or _is_direct(asked.hostname or "", asked.port or PORTS.get(asked.scheme, 0), no_proxy):
        return None
    return usable_proxy(proxy if "://" in proxy else f"http://{proxy}", where=variable)


def usable_proxy(proxy: str, *, where: str) -> str:
    """`proxy` unless it cannot be used. Raises: `UsageError`, without the URL: it may hold a password."""
    try:
        parts = urlsplit(proxy)
        usable = parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"{where} is not the URL of an HTTP proxy: use http://host:port or https://host:port")
    return proxy


def _is_direct(host: str, port: int, no_proxy: str) -> bool:
    if host == "localhost" or _means("127.0.0.0/8", host) or _means("::1", host):
        return True
    for entry in no_proxy.lower().replace(" ", "").split(","):
        name, _, wanted = entry.rpartition(":")
        if _means(entry, host) or (wanted == str(port) and _means(name, host)):
            return True
    return False


def _means(entry: str, host: str) -> bool:
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        domain = entry.removeprefix("*").removeprefix(".")
        return entry in ("*", host) or (domain != "" and host.endswith(f".{domain}"))


async def open_tunnel(connection: HttpConnection, server: Address, proxy: Address, ends: float) -> None:
    """Ask the proxy for a tunnel. Raises: `OSError` when it refuses."""
    to = f"[{server.host}]:{server.port}" if ":" in server.host else f"{server.host}:{server.port}"
    lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    answer = connection.answer
    await connection.send(WireRequest("CONNECT", to, "\r\n".join([*lines, "", ""]).encode(), 0), ends)
    await connection.until(answer.is_ready, ends)
    if not 200 <= answer.status < 300:
        raise OSError(f"{answer.status} {answer.reason.decode('latin-1')}".rstrip())
    if answer.surplus:
        raise OSError("its proxy sent something before the tunnel was used")
