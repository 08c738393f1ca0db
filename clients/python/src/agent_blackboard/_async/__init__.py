"""Asynchronous client, the source of both; `_sync` is made from it."""
