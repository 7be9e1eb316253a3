"""Our loaders beside everyone else's: `python -m tests.benchmarks.peers --rounds 3`.

The same rows, the same batch, the same disk, in turn. Every measurement is a fresh process, in a
page cache that was checked. Every contestant's rows are proved right, and how well it mixes them is
measured, because order is what speed is most easily bought with.
"""
