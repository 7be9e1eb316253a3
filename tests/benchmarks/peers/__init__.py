"""Our loaders beside everyone else's: `python -m tests.benchmarks.peers --rounds 3`.

Every measurement is a fresh process, in a page cache that was checked. Every contestant's rows are
proved right, and its mixing measured, because order is what speed is most easily bought with.
"""
