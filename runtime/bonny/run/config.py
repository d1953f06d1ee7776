"""Config: the settings of one operator process, from its environment.

Each is frozen, checked, and named in one sentence when it is wrong. Environment beats what `Operator` or a task says.

    BONNY_WATCH_NAMESPACE      which namespaces are watched: one, several with commas, or __ALL__ (the default)
    BONNY_POD_NAMESPACE        where the operator itself runs; watched when BONNY_WATCH_NAMESPACE is not set
    BONNY_POD_NAME             how its events name it (default: the name of the host)
    BONNY_KUBECONFIG           a kubeconfig, before KUBECONFIG
    BONNY_CONTEXT              a context of the kubeconfig
    BONNY_HTTP_PORT            port of /healthz, /readyz and /metrics; 0 takes a free one (default 8080)
    BONNY_HTTP_HOST            address of the same (default 0.0.0.0)
    BONNY_LOG_FORMAT           console or json (default: console on a terminal, else json)
    BONNY_LOG_LEVEL            debug, info, warning or error (default info)
    BONNY_LEADER_ELECTION      true or false: whether only one of several replicas acts (default false)
    BONNY_GRACE_SECONDS        time for running handlers after SIGTERM (default 25, or what the operator says)
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from ..errors import UsageError
from ..naming import check_dns_label
from ..operator import LONGEST_GRACE

__all__ = ["ALL_NAMESPACES", "Config", "Setting", "settings"]

ALL_NAMESPACES: Final = "__ALL__"
PREFIX: Final = "BONNY_"
LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Set by the manifest for handlers and telemetry to read; no setting of the process.
INFORMATIVE: Final = frozenset({"BONNY_POD_SERVICE_ACCOUNT"})
# What is heeded although it is not ours (client.config, client.proxy, telemetry.logging, telemetry.tracing).
HEEDED: Final = (
    "KUBECONFIG",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
    "NO_COLOR",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_SERVICE_NAME",
    "OTEL_SDK_DISABLED",
)
# Up to the last @, because a password may hold one that should have been encoded.
CREDENTIALS: Final = re.compile(r"^(\w+://)?.*@")
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
    """Port of the probes and the metrics; 0: any free one; it is logged."""

    log_json: bool = field(default_factory=lambda: not sys.stderr.isatty())
    log_level: int = logging.INFO
    leader_election: bool = False
    """Whether it acts only while it holds its Lease in its own namespace. Default False; manifests set it."""

    grace: float = 25.0
    """How long running handlers may go on after SIGTERM. Default 25 s, or what the operator says."""

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


class Setting(NamedTuple):
    """A setting as it is in force, spelled as its variable would be; `source`: default, operator, or a variable."""

    name: str
    value: str
    source: str


def settings(environ: Mapping[str, str] | None = None, *, base: Config | None = None) -> list[Setting]:
    """Every setting as `Config.from_environment` finds it, and where it comes from; passwords are masked.

    Raises: as that does.
    """
    environ = os.environ if environ is None else environ
    config, before, default = Config.from_environment(environ, base=base), base or Config(), Config()
    found = []
    for name in _READERS:
        field_name = _FIELDS.get(name, name.removeprefix(PREFIX).lower())
        value, said, usual = (getattr(known, field_name) for known in (config, before, default))
        sources = [name, "BONNY_POD_NAMESPACE"] if field_name == "watch_namespaces" else [name]
        set_by = next((source for source in sources if environ.get(source)), None)
        found.append(Setting(name, _spelled(field_name, value), set_by or ("default" if said == usual else "operator")))
    others = (name for name in (*sorted(INFORMATIVE), *HEEDED) if environ.get(name))
    return found + [Setting(name, CREDENTIALS.sub(r"\1***@", environ[name]), name) for name in others]


def _spelled(field_name: str, value: object) -> str:
    match field_name:
        case "watch_namespaces":
            return ",".join(value) if isinstance(value, tuple) else ALL_NAMESPACES
        case "log_json":
            return "json" if value else "console"
        case "log_level":
            return next((name for name, level in LEVELS.items() if level == value), str(value))
        case "leader_election":
            return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


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


def _leader_election(config: Config, value: str) -> Config:
    if value not in ("true", "false"):
        raise UsageError(f"BONNY_LEADER_ELECTION is {value!r}: use true or false")
    return replace(config, leader_election=value == "true")


def _grace(config: Config, value: str) -> Config:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_GRACE:
        raise UsageError(f"BONNY_GRACE_SECONDS is {value!r}: use a number of seconds from 0 to {LONGEST_GRACE:.0f}")
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
    "BONNY_LEADER_ELECTION": _leader_election,
    "BONNY_GRACE_SECONDS": _grace,
}
# The fields that are not called like their variables.
_FIELDS: Final = {
    "BONNY_WATCH_NAMESPACE": "watch_namespaces",
    "BONNY_LOG_FORMAT": "log_json",
    "BONNY_GRACE_SECONDS": "grace",
}
