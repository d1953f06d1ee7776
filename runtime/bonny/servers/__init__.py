"""The long-running parts: `reflector` follows a kind, `intake` queues what it sees, `worker` handles what is queued."""
