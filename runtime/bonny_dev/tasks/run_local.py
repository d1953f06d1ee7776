"""run-local: the operator on this machine, against a cluster of yours or a sandbox of its own.

The CRDs are installed first (`provision`); then the operator runs in this process as it would in a pod. At the end it
prints how the permissions that were used differ from the manifest. A sandbox calls its webhooks; another cluster
does not. Elsewhere: a process that is restarted when the source changes (`reload`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from bonny.carried import is_present
from bonny.client.config import Cluster, Kubeconfig, own_namespace
from bonny.client.errors import shows_values
from bonny.errors import UsageError
from bonny.main import defaults, serve
from bonny.operator import Operator
from bonny.resource import Resource, listed
from bonny.run.config import Config, namespaces_of

from .. import files
from ..console_log import SCHEDULER, WORKER, console
from ..crd.definition import crds
from ..install import chosen_cluster, with_context
from ..manifest.rbac import Permission, needs
from ..manifest.recorder import NOT_RECORDED, PermissionRecorder, record_permissions
from ..sandbox import Sandbox
from ..sandbox.commands import CHECK_SECONDS, WORKLOADS
from ..sandbox.processes import ServerProcess
from ..uses import has_webhooks, labels_for, namespace_with
from .options import LocalRun
from .provision import Account, announce, apply_samples, install_account, install_crds, register_webhooks

if TYPE_CHECKING:
    from ..local_webhooks import Loopback

# After Ctrl-C a person waits.
GRACE_SECONDS: Final = 3.0
# Names a file, in the environment of the runs of one `--reload` or `--replicas`: what one run did not use, another one
# may have used.
SUMMED_IN: Final = "RUN_LOCAL_PERMISSIONS"
# Names a folder there, if a sandbox is to call the webhooks: the certificate and the port of all its runs.
CALLED_IN: Final = "RUN_LOCAL_WEBHOOKS"
# The server is usually there after half a second.
POLL_SECONDS: Final = 0.1

Loopbacks: TypeAlias = "tuple[Loopback | None, Loopback | None]"


def run(operator: Operator, options: LocalRun, *, root: Path | None = None) -> None:
    """Serve the operator of the repository at `root` until Ctrl-C.

    Raises: `UsageError` when there is no cluster, or it does not let us in.
    """
    shows_values.set(True)
    base = defaults(operator)
    if options.as_service_account and operator.namespaced:
        base = replace(base, watch_namespaces=(operator.name,))
    config = configured(options, base)
    with cluster_of(options, config) as cluster, _webhooks(operator, options, cluster) as (loopback, called):
        if loopback:
            from bonny.webhooks.settings import WebhookSettings

            config = config.with_(WebhookSettings, port=loopback.port, certificate=str(loopback.folder))
        # For an operator of one namespace the watched namespace: its webhooks review no other.
        namespace = (config.watch_namespaces or [operator.name])[0] if operator.namespaced else operator.name
        # Without its webhook the API server would drop the fields in which the versions of a kind differ.
        converted = {hub.kind for hub in operator.converted}
        alone = crds([version for version in operator.crds if version.kind not in converted], operator.group)
        definitions = called.crds(operator, namespace) if called else alone
        identity = _provision(operator, options, cluster, definitions)

        def prepare() -> None:
            if called:
                asyncio.run(register_webhooks(operator, cluster, called, namespace=namespace))
            if options.apply_samples and root is not None:
                _apply_samples(operator, config, cluster, root / "samples")

        with _once_it_answers(called, prepare):
            if operator.deploy.secure_metrics:
                print("metrics are in plain text, for everyone on this machine: secure_metrics is for a cluster")
            print(f"watching {_watched(config)} of {cluster.source}; Ctrl-C ends it", flush=True)
            logging.getLogger("bonny.run.process").addFilter(without_what_was_printed)
            if config.log_level <= logging.INFO:
                # A developer wants to see every reconcile, also when nothing changed, and every scheduler's decision.
                for name in (WORKER, SCHEDULER):
                    logging.getLogger(name).setLevel(logging.DEBUG)
            with _console(operator, config, cluster, root, namespace=namespace) as watched:
                _serve(operator, watched, identity)


def _watched(config: Config) -> str:
    """The watched namespaces, in words."""
    selector = _selector(config)
    return f"namespaces with {selector}" if selector else config.watched


def _selector(config: Config) -> str:
    """The labels of the watched namespaces; empty if they are not chosen by labels."""
    if config.watch_namespaces != ():
        return ""
    from bonny.namespaces import NamespaceSelector

    return config.of(NamespaceSelector).selector


@contextmanager
def _console(
    operator: Operator, config: Config, cluster: Cluster, root: Path | None, *, namespace: str
) -> Iterator[Config]:
    """Serve the page that shows the operator meanwhile, if the repository carries the extra `console`; `invoke why` and
    `invoke top` find it."""
    if not is_present("console"):
        yield config
        return
    from bonny.console.settings import ConsoleSettings

    from ..console.command import beside
    from ..inside.local import Answering, announced

    server = asyncio.run(cluster.connect()).server
    with (
        beside(cluster, operator, namespace=namespace) as (port, token),
        announced(root or Path.cwd(), Answering(f"http://127.0.0.1:{port}", token, server)),
    ):
        yield config.with_(ConsoleSettings, port=port, token=token)


@contextmanager
def _webhooks(operator: Operator, options: LocalRun, cluster: Cluster) -> Iterator[Loopbacks]:
    """The port and certificate to serve the operator's webhooks with, and the same if the cluster is to call it."""
    if not has_webhooks(operator):
        yield None, None
        return
    from ..local_webhooks import Loopback

    shared = os.environ.get(CALLED_IN)
    with tempfile.TemporaryDirectory(prefix="bonny-webhooks-") as folder:
        loopback = Loopback.at(Path(shared or folder))
        if not (called := bool(options.sandbox or shared)):
            print(f"webhooks and conversions of {cluster.source} are left alone: to try them, use --sandbox")
            for hub in operator.converted:
                print(f"  the CRD of {hub.kind} is not installed: its versions need the webhook of a deployed operator")
        yield loopback, loopback if called else None


@contextmanager
def _once_it_answers(loopback: Loopback | None, work: Callable[[], None]) -> Iterator[None]:
    """Do `work` in a thread as soon as the `with` serves webhooks at `loopback`; at once if the cluster calls none.

    Raises: the `UsageError` of `work`, which ends the block of the `with`.
    """
    if loopback is None:
        work()
        yield
        return
    over, failures = threading.Event(), list[Exception]()

    def wait_and_work() -> None:
        while not loopback.answers():
            if over.wait(POLL_SECONDS):
                return
        try:
            if not over.is_set():
                work()
        except Exception as error:  # noqa: BLE001  raised again below
            failures.append(error)
            if not over.is_set():
                os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait_and_work, name=NOT_RECORDED, daemon=True).start()
    try:
        yield
    finally:
        over.set()
    if failures:
        raise failures[0]


def without_what_was_printed(record: logging.LogRecord) -> bool:
    """Shorten the line `started`, which would be wider than a terminal; a filter that lets every record pass."""
    if record.msg == "started":
        for name in ("cluster", "watches", "schedulers" if vars(record).get("schedulers") == "none" else ""):
            vars(record).pop(name, None)
    return True


def _serve(operator: Operator, config: Config, identity: Cluster) -> None:
    """Serve, and then compare the permissions that were used with the manifest."""
    namespace = config.pod_namespace or own_namespace()
    granted = needs(
        operator, namespace=namespace, watched=config.watch_namespaces, leader_election=config.leader_election
    )
    with record_permissions() as recorder:
        serve(operator, config, identity, console=console)
    if isinstance(identity, Account):
        # The administrator requested its tokens, in this process.
        token = Permission(identity.namespace, "", "serviceaccounts/token", (identity.name,), "create")
        recorder.used.discard(token)
    if SUMMED_IN in os.environ:
        _add_up(Path(os.environ[SUMMED_IN]), recorder, granted)
    else:
        print(recorder.compared_with(granted), end="", flush=True)


class Sum(msgspec.Struct):
    """The permissions that several runs used so far, compared with the manifest of the last one."""

    used: list[Permission]
    report: str


def _add_up(file: Path, recorder: PermissionRecorder, granted: Mapping[str, Iterable[Resource]]) -> None:
    """Add the permissions that this run used to the sum in `file`, which is printed after the last run."""
    import fcntl  # Windows has none, nor replicas that run in a sandbox

    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # replicas end at the same time
        with suppress(FileNotFoundError):
            recorder.used.update(msgspec.json.decode(file.read_bytes(), type=Sum).used)
        summed = Sum(used=sorted(recorder.used), report=str(recorder.compared_with(granted)))
        files.write(file, msgspec.json.encode(summed).decode())


def _provision(operator: Operator, options: LocalRun, cluster: Cluster, definitions: list[Resource]) -> Cluster:
    """Install the objects that the flags need; returns the cluster with the identity of the operator."""
    if not (options.sandbox or CALLED_IN in os.environ):
        asyncio.run(announce(operator, cluster))
    names = asyncio.run(install_crds(operator, cluster, definitions))
    print(f"installed {', '.join(names) or 'no CRDs'}")
    if not options.as_service_account:
        if left_out := listed([policy.name for policy in operator.declarations]):
            print(f"admission policies are not installed ({left_out}): to try them, use --as-service-account")
        return cluster
    account = asyncio.run(install_account(operator, cluster))
    print(f"runs as ServiceAccount {account.namespace}/{account.name}, with the permissions of the manifest only")
    return account


def _apply_samples(operator: Operator, config: Config, cluster: Cluster, samples: Path) -> None:
    namespace = (config.watch_namespaces or ("default",))[0]
    applied = asyncio.run(apply_samples(operator, cluster, samples, namespace=namespace))
    print(f"applied {', '.join(applied) or f'nothing: {samples.name}/ holds no YAML'}")
    if applied:
        print(f"to change a sample yourself: kubectl apply --server-side --filename {samples.name}/", flush=True)


def configured(options: LocalRun, base: Config) -> Config:
    """The settings: flags before the environment before `base`. Raises: `UsageError` when they are invalid."""
    if options.sandbox and options.context:
        raise UsageError("--sandbox and --context exclude each other: a sandbox is a cluster of its own")
    if options.replicas != 1 and options.reload:
        raise UsageError("--replicas and --reload exclude each other: start again after a change")
    if options.workloads and not options.sandbox:
        raise UsageError("--workloads needs --sandbox: another cluster has controllers and kubelets of its own")
    base = replace(base, http_host="127.0.0.1", http_port=0, grace=GRACE_SECONDS, log_json=False)
    config = Config.from_environment(base=base)
    if options.namespace:
        config = replace(config, watch_namespaces=namespaces_of(options.namespace, where="--namespace"))
    return config


@contextmanager
def cluster_of(options: LocalRun, config: Config) -> Iterator[Cluster]:
    """The cluster that is meant; a sandbox is started, gets the namespaces that are watched, and is stopped afterwards.

    Raises: `UsageError` when there is none.
    """
    if not options.sandbox:
        yield chosen_cluster(config, options.context)
        return
    print("starting a sandbox ...", flush=True)
    with Sandbox(workloads=options.workloads, progress=partial(print, flush=True)) as sandbox:
        for name in config.watch_namespaces or ():
            sandbox.apply(namespace_with(name))
        if labels := labels_for(_selector(config)):
            sandbox.apply(namespace_with("default", labels))
            print(
                f"the namespace default has the labels {','.join(map('='.join, labels.items()))}, so that it is watched"
            )
        commands = f"  export KUBECONFIG={sandbox.kubeconfig}\n  kubectl get crds\n"
        if options.workloads:
            print("controllers run, kubelets are simulated: a pod becomes Ready, and nothing runs in it")
        print(f"it is ready; in another terminal:\n{commands}", flush=True)
        with _reporting_ends(sandbox):
            yield with_context(Kubeconfig(str(sandbox.kubeconfig)))


@contextmanager
def _reporting_ends(sandbox: Sandbox) -> Iterator[None]:
    """Print a sentence for each process of the sandbox that ends by itself; the operator goes on, as in a cluster."""
    over = threading.Event()

    def watch() -> None:
        running = sandbox.servers
        while running and not over.wait(CHECK_SECONDS):
            for server in [each for each in running if not each.running]:
                running.remove(server)
                what = f"stopped by itself: {effect_of(server)}; press Ctrl-C and start again"
                print(server.failure(what), flush=True)

    thread = threading.Thread(target=watch, name=NOT_RECORDED)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def effect_of(server: ServerProcess) -> str:
    """The effect of the end of a process of the sandbox."""
    if server.name == WORKLOADS:
        return "pods no longer become Ready, and nothing is collected"
    return "the operator cannot reach its cluster"
