"""A real control plane on this machine: finds or builds etcd and kube-apiserver, runs them, cleans up. No Docker.

You need it for tests and for trying an operator out: `with Sandbox() as sandbox: ...`.
A running operator never imports it. It needs only the standard library.
Elsewhere: pytest fixtures (`bonny_dev.testing`), the tasks `invoke sandbox.*` (`commands`).
"""

from .processes import SandboxError as SandboxError
from .server import Sandbox as Sandbox
