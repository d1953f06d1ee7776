"""The long-running parts: `stream` follows a kind, `intake` queues what it sees, `worker` handles what is queued."""
