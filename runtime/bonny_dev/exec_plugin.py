"""Exec plugin: a command in a kubeconfig that prints credentials, run as kubectl runs it.

The runtime finds it by its entry point (`bonny.carried.of_tools`): no image has such a command. The official client
continues without credentials when the command fails; here that is an error with the command. Its stderr is passed on,
as with kubectl: it may prompt a person for a password.
Source: client.authentication.k8s.io, ExecCredential.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bonny.errors import UsageError

# Enough to log in with a browser; a command that hangs must not go unnoticed.
PLUGIN_SECONDS: Final = 120.0
# Credentials are renewed this long before they expire, because of clock skew and requests under way.
EARLY_SECONDS: Final = 10.0
# A command that prints expired credentials is not run for each request.
SHORTEST_SECONDS: Final = 1.0


class Credential(msgspec.Struct, frozen=True, rename="camel"):
    """Credentials from a plugin: a token, a certificate with its key (PEM), or both."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    @property
    def max_age(self) -> float:
        """Seconds after which the credentials should be renewed."""
        if self.expiration_timestamp is None:
            return float("inf")
        left = (self.expiration_timestamp - datetime.now(UTC)).total_seconds()
        return max(left - EARLY_SECONDS, SHORTEST_SECONDS)


class _Printed(msgspec.Struct, rename="camel"):
    api_version: str
    status: Credential


async def credentials(settings: Mapping[str, Any], *, folder: Path, user: str) -> tuple[dict[str, Any], float]:
    """Run the command in a user's `exec` settings; `folder` is the kubeconfig's, `user` is the name for messages.

    Returns: the entries of a user with a token, a certificate or both, and the seconds for which they may be used.

    Raises: `UsageError` when it cannot be run, fails, takes longer than 120 s, or prints no credentials.
    """
    label = f"the command {settings.get('command')!r} of {user}"
    interactive = settings.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    asked = {"apiVersion": settings.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": interactive}}
    try:
        command: str = settings["command"]
        # A path is relative to the kubeconfig, as with kubectl; a name is searched on PATH.
        program = str(folder / command) if os.sep in command else command
        given = {variable["name"]: variable["value"] for variable in settings.get("env") or ()}
        env = {**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
        process = await asyncio.create_subprocess_exec(
            program, *(settings.get("args") or ()), stdin=None if interactive else DEVNULL, stdout=PIPE, env=env
        )
    except (OSError, TypeError, ValueError, LookupError) as error:
        hint = " ".join(str(settings.get("installHint") or "install it, or correct the kubeconfig").split())
        raise UsageError(f"{label} cannot be run ({type(error).__name__}): {hint}") from error
    try:
        async with asyncio.timeout(PLUGIN_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError as error:
        raise UsageError(f"{label} ran longer than {PLUGIN_SECONDS:.0f} s: run it by hand") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise UsageError(f"{label} failed with exit code {process.returncode}: see its output on stderr")
    found = _credential(printed, version=settings.get("apiVersion"), label=label)
    entries: dict[str, Any] = {"token": found.token} if found.token else {}
    if found.client_key_data:
        entries["client-certificate-data"] = base64.b64encode(found.client_certificate_data.encode())
        entries["client-key-data"] = base64.b64encode(found.client_key_data.encode())
    return entries, found.max_age


def _credential(printed: bytes, *, version: str | None, label: str) -> Credential:
    """The printed credentials. Errors never quote the output: it holds the token."""
    try:
        decoded = msgspec.json.decode(printed, type=_Printed)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(f"{label} printed no ExecCredential: run it by hand") from None
    if decoded.api_version != version:
        raise UsageError(f"{label} printed {decoded.api_version}, the kubeconfig {version}: correct it there")
    credential = decoded.status
    if not credential.token and not (credential.client_certificate_data and credential.client_key_data):
        raise UsageError(f"{label} printed neither a token nor a certificate with its key: log in again")
    return credential
