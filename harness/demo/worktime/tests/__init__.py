"""Run with `python3 -m unittest`."""
