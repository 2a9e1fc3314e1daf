"""How operations run: one at a time for each key, with backoff, on a bounded pool, with a word of where one hangs."""
