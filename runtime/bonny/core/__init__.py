"""The sans-IO core: bytes and times in, decisions out. No sockets, no clock, no asyncio, no chance of its own."""
