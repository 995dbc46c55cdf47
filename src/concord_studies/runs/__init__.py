"""Runs: what one is (``run``), the keys that state it (``keys``), its draws and its metrics."""
