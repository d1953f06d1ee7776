"""Config: the settings of one operator process, from its environment.

Each is frozen, checked, and named in one sentence when it is wrong. Environment beats what `Operator` or a task says.

    BONNY_WATCH_NAMESPACE      which namespaces are watched: one, several with commas, or __ALL__ (the default)
    BONNY_POD_NAMESPACE        where the operator itself runs; watched when BONNY_WATCH_NAMESPACE is not set
    BONNY_POD_NAME             how its events name it (default: the name of the host)
    BONNY_KUBECONFIG           a kubeconfig, before KUBECONFIG
    BONNY_CONTEXT              a context of the kubeconfig
    BONNY_HTTP_PORT            port of /healthz and /readyz; 0 takes a free one (default 8080)
    BONNY_HTTP_HOST            address of the same (default 0.0.0.0)
    BONNY_LOG_FORMAT           console or json (default: console on a terminal, else json)
    BONNY_LOG_LEVEL            debug, info, warning or error (default info)
    BONNY_GRACE_SECONDS        time for running handlers after SIGTERM (default 25)
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from .errors import UsageError
from .naming import check_dns_label

__all__ = ["ALL_NAMESPACES", "Config"]

ALL_NAMESPACES: Final = "__ALL__"
PREFIX: Final = "BONNY_"
LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Set by the manifest for handlers and telemetry to read; no setting of the process.
INFORMATIVE: Final = frozenset({"BONNY_POD_SERVICE_ACCOUNT"})
# The kubelet describes each Service of the namespace by such variables; one may be called bonny-something.
SERVICE_LINK: Final = re.compile(
    r"\w+_SERVICE_(HOST|PORT(_\w+)?)=.*|\w+_PORT=\w+://.*|\w+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one process. Times are seconds."""

    watch_namespaces: tuple[str, ...] | None = None
    """The namespaces that are watched; None (the default): all."""

    pod_namespace: str | None = None
    """Where the operator itself runs, if it runs in a cluster."""

    pod_name: str = field(default_factory=socket.gethostname)
    """Which of the operator's replicas this is."""

    kubeconfig: str | None = None
    context: str | None = None
    http_host: str = "0.0.0.0"  # noqa: S104  the kubelet asks the pod's address
    http_port: int = 8080
    """Port of the probes; 0: any free one; it is logged."""

    log_json: bool = field(default_factory=lambda: not sys.stderr.isatty())
    log_level: int = logging.INFO
    grace: float = 25.0
    """How long running handlers may go on after SIGTERM. Default 25 s of a pod's 30."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, *, base: Config | None = None) -> Config:
        """The settings of `environ` (default: the process's own) over those of `base`.

        Raises: `UsageError` for an unknown BONNY_ variable and for a value that cannot be.
        """
        environ = os.environ if environ is None else environ
        config = base or cls()
        given = {name: value for name, value in environ.items() if name.startswith(PREFIX) and value}
        for name, value in given.items():
            if name in INFORMATIVE or (name not in _READERS and SERVICE_LINK.fullmatch(f"{name}={value}")):
                continue
            if name not in _READERS:
                known = ", ".join(sorted({*_READERS, *INFORMATIVE}))
                raise UsageError(f"the environment variable {name} is not known: correct it to one of {known}")
            config = _READERS[name](config, value)
        if "BONNY_POD_NAMESPACE" in given and "BONNY_WATCH_NAMESPACE" not in given:
            config = replace(config, watch_namespaces=None if config.pod_namespace is None else (config.pod_namespace,))
        return config

    @property
    def watched(self) -> str:
        """What is watched, in words."""
        return "all namespaces" if self.watch_namespaces is None else "namespace " + ", ".join(self.watch_namespaces)


def namespaces_of(text: str, *, where: str) -> tuple[str, ...] | None:
    """Read one namespace, several with commas, or `__ALL__` (None). `where` names the setting in messages."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if names == (ALL_NAMESPACES,):
        return None
    if not names or any(name.startswith("__") for name in names):
        raise UsageError(f"{where} is {text!r}: name one namespace, several with commas, or {ALL_NAMESPACES}")
    for name in names:
        check_dns_label(name, f"namespace in {where}")
    return names


def _watch(config: Config, value: str) -> Config:
    return replace(config, watch_namespaces=namespaces_of(value, where="BONNY_WATCH_NAMESPACE"))


def _pod_namespace(config: Config, value: str) -> Config:
    if value == ALL_NAMESPACES:
        return replace(config, pod_namespace=None)
    return replace(config, pod_namespace=check_dns_label(value, "namespace in BONNY_POD_NAMESPACE"))


def _port(config: Config, value: str) -> Config:
    if not (value.isdecimal() and len(value) <= 5 and int(value) <= 65_535):
        raise UsageError(f"BONNY_HTTP_PORT is {value!r}: use a port from 1 to 65535, or 0 for any free one")
    return replace(config, http_port=int(value))


def _log_format(config: Config, value: str) -> Config:
    if value not in ("console", "json"):
        raise UsageError(f"BONNY_LOG_FORMAT is {value!r}: use console or json")
    return replace(config, log_json=value == "json")


def _log_level(config: Config, value: str) -> Config:
    if value not in LEVELS:
        raise UsageError(f"BONNY_LOG_LEVEL is {value!r}: use {', '.join(LEVELS)}")
    return replace(config, log_level=LEVELS[value])


def _grace(config: Config, value: str) -> Config:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise UsageError(f"BONNY_GRACE_SECONDS is {value!r}: use a number of seconds from 0 to 3600")
    return replace(config, grace=seconds)


_READERS: Final = {
    "BONNY_WATCH_NAMESPACE": _watch,
    "BONNY_POD_NAMESPACE": _pod_namespace,
    "BONNY_POD_NAME": lambda config, value: replace(config, pod_name=value),
    "BONNY_KUBECONFIG": lambda config, value: replace(config, kubeconfig=value),
    "BONNY_CONTEXT": lambda config, value: replace(config, context=value),
    "BONNY_HTTP_HOST": lambda config, value: replace(config, http_host=value),
    "BONNY_HTTP_PORT": _port,
    "BONNY_LOG_FORMAT": _log_format,
    "BONNY_LOG_LEVEL": _log_level,
    "BONNY_GRACE_SECONDS": _grace,
}
