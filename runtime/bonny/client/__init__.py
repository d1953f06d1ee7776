"""Client: address and credentials (`config`), bytes to and from the server (`transport`, `http`), requests (`api`)."""
