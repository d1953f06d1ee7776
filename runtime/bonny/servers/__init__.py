"""Servers: reconcilers, watchers and periodic tasks, which users write beside controllers.

You need them for work that has no desired state to declare: by time, or to observe. List them in
`Operator(controllers=[...])`, or leave that to `discover`. They run on the leader, except a `PeriodicTask`
with `leader_only=False`.
You do not need them to own children or to write a status: `Controller`.
"""
