"""Local webhooks: lets an API server of this machine call an operator that runs as a process of this machine.

You need it for sandboxes: `invoke run-local --sandbox`, and the fixture `running_operator`. The server is called at
127.0.0.1 instead of a Service, and a CA that signs nothing else stands for that of the cluster.
You do not need it for another cluster, whose API server cannot reach this machine. It needs the extra `webhooks`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bonny.client.api import Client
from bonny.client.errors import NotFound, ServerError
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import Resource, key_of
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY
from bonny.webhooks.ca_bundles import client_configs

from . import files
from .crd.definition import crds
from .install import install, kind_of
from .manifest.webhooks import webhooks, with_conversion
from .sandbox.ports import LOOPBACK, free_ports

CONFIG_MAP: Final = Kind("v1", "ConfigMap")
PORT: Final = "port"
POLL_SECONDS: Final = 0.02
# Usually 0.03; the rest is for a loaded machine.
IN_FORCE_SECONDS: Final = 30.0
# A webhook that fails for one name: it shows that its configuration is in force, and then it is removed.
TRIAL: Final = "trial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback:
    """A port of this machine, and the folder with the certificate that is served there."""

    port: int
    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Loopback:
        """The certificate in `folder`; a new certificate, valid for a year, if there is none.

        Raises: `UsageError` when the package `cryptography` is not installed.
        """
        if not (folder / PORT).exists():
            from bonny.tls import certificates  # noqa: PLC0415  it needs a package

            made = certificates.issue(["localhost"], [LOOPBACK])
            for name, pem in ((CERTIFICATE, made.certificate), (KEY, made.key), (BUNDLE, made.ca)):
                files.write(folder / name, pem.decode())
            files.write(folder / PORT, str(free_ports(1)[0]))
        return cls(port=int((folder / PORT).read_text("utf-8")), folder=folder)

    def environment(self) -> dict[str, str]:
        """The settings of the operator's process."""
        return {"BONNY_WEBHOOK_PORT": str(self.port), "BONNY_WEBHOOK_CERTIFICATE": str(self.folder)}

    def called(self, document: Resource) -> Resource:
        """`document`, a CRD or a webhook configuration, with this address in place of the operator's Service."""
        called = deepcopy(document)
        authority = b64encode((self.folder / BUNDLE).read_bytes()).decode()
        for config in client_configs(called).values():
            path = config.pop("service")["path"]
            config |= {"url": f"https://{LOOPBACK}:{self.port}{path}", "caBundle": authority}
        return called

    def answers(self) -> bool:
        """Whether a server is there that the API server would trust."""
        context = ssl.create_default_context(cafile=self.folder / BUNDLE)
        with (
            suppress(OSError),
            socket.create_connection((LOOPBACK, self.port), timeout=1) as plain,
            context.wrap_socket(plain, server_hostname=LOOPBACK),
        ):
            return True
        return False

    def crds(self, operator: Operator, namespace: str) -> list[Resource]:
        """The operator's CRDs with conversions."""
        return [self.called(each) for each in with_conversion(operator, namespace, crds(operator.crds, operator.group))]

    async def register(self, client: Client, operator: Operator, namespace: str, *, manager: str) -> None:
        """Register the operator's admission webhooks, and wait until they are in force.

        Reviewed are the namespaces that the operator in `namespace` reviews.
        """
        configurations = [self.called(each) for each in webhooks(operator, namespace)]
        await install(client, [_with_trial(each) for each in configurations], manager=manager)
        for each in configurations:
            metadata = {"name": _trial_of(each), "namespace": "default"}
            trial = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            with suppress(ServerError):  # the webhook of the trial fails
                async with asyncio.timeout(IN_FORCE_SECONDS):
                    while await client.apply(CONFIG_MAP, trial, manager=manager, dry_run=True):  # noqa: ASYNC110
                        await asyncio.sleep(POLL_SECONDS)
        await install(client, configurations, manager=manager)

    async def unregister(self, client: Client, operator: Operator, namespace: str) -> None:
        """Delete the admission webhooks, as far as there are some."""
        for each in webhooks(operator, namespace):
            with suppress(NotFound):
                await client.delete(kind_of(each), key_of(each))


def _trial_of(configuration: Resource) -> str:
    return f"{TRIAL}-{configuration['kind'].lower()}.{configuration['metadata']['name']}"


def _with_trial(configuration: Resource) -> Resource:
    """With a webhook that fails for one ConfigMap, which is never stored: when it does, all of them are in force."""
    name = _trial_of(configuration)
    first = configuration["webhooks"][0]
    trial = {
        "name": name,
        "clientConfig": {**first["clientConfig"], "url": f"{first['clientConfig']['url']}/{TRIAL}"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "matchConditions": [{"name": TRIAL, "expression": f"object.metadata.name == '{name}'"}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {**configuration, "webhooks": [*configuration["webhooks"], trial]}
