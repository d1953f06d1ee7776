"""Workloads: controllers and simulated kubelets beside the API server of a sandbox.

`python -m bonny_dev.workloads` is a process of its own: it runs kube-controller-manager (`controllers`) and plays the
kubelets, the default scheduler and a storage provisioner (`cluster`). Functions without I/O decide what becomes of an
object: `pods`, `node_choice`, `volumes`. `behaviours` lists what a test can ask for.

You need it in a sandbox where Deployments become Available and deletions are followed: `Sandbox(workloads=True)`.
Nothing runs in a pod, and there is no network.
"""
