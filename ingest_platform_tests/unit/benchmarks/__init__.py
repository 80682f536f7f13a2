"""The arithmetic of the benchmarks: a wrong figure is worse than none."""
