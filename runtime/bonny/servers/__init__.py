"""The long-running parts: `stream` follows a kind, `router` queues what it sees, `worker` handles what is queued."""
