"""The client: where the server is and who we are (`config`), bytes to and from it (`transport`), requests (`api`)."""
