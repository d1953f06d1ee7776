"""Workloads: controllers and simulated kubelets beside the API server of a sandbox.

`python -m bonny_dev.workloads` is a process of its own: it runs kube-controller-manager (`controllers`) and plays the
kubelets, the default scheduler and a storage provisioner (`cluster`). What it does with an object is decided by
functions without I/O: `pods`, `scheduling`, `volumes`. `behaviours` says what a test can ask for.

You need it in a sandbox where Deployments become Available and deletions are followed: `Sandbox(workloads=True)`.
Nothing runs in a pod, and there is no network.
"""
