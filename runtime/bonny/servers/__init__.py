"""Servers: reconcilers, watchers and periodic tasks, which users write beside controllers."""
