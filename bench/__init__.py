"""Benchmarks: every figure beside its anchor, measured in one run, reported as a ratio. Run with ``make bench``."""
