"""HTTP/1.1 over asyncio: addresses, connections, answers and idle connections, below `bonny.client.transport`."""
