"""`python -m data_gen npy OUT --size 4GiB` makes data; `check` and `shuffle` work on files."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from data_gen.comparison import check
from data_gen.description import described_data, descriptions_in
from data_gen.generate import ensure
from data_gen.layouts import parse_shape
from data_gen.shuffling import shuffle

_EXAMPLES = """examples:
  python -m data_gen npy data --size 4GiB --shape 64,64
  python -m data_gen npy data --rows 2000000 --jobs 2
  python -m data_gen hdf5 data --size 1GiB --chunks 512,128 --compression gzip:4
  python -m data_gen check data
  python -m data_gen shuffle rows.npy shuffled.npy --also labels.npy shuffled-labels.npy
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line; the usage is behind --help."""
        self.exit(2, f"error: {message} (python -m data_gen --help says what there is)\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m data_gen",
        description="Make a dataset whose right values are known, in constant memory. "
        "Data that is complete already is found and left as it is.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("format", choices=("npy", "hdf5"))
    parser.add_argument("out", metavar="OUT", help="the folder; it is made if it is not there")
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--rows", type=int, metavar="N", help="the number of rows")
    amount.add_argument("--size", help="of all rows: 4GiB, 512MiB, or 1.5xram of this machine")
    parser.add_argument("--shape", default="128", help="of one row: 64,64 (default: 128)")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same data (default: 0)")
    parser.add_argument("--classes", type=int, default=10, help="different labels (default: 10)")
    parser.add_argument(
        "--order",
        default="shuffled",
        choices=("shuffled", "sorted"),
        help="of the labels along the file (default: shuffled)",
    )
    parser.add_argument("--chunks", help="hdf5: a shape as 512,128, or auto (default: contiguous)")
    parser.add_argument("--compression", help="hdf5: none, lzf or gzip:LEVEL (default: none)")
    parser.add_argument("--jobs", type=int, default=1, help="threads that make rows (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = {"check": _check, "shuffle": _shuffle}.get(words[0] if words else "")
        return command(words[1:]) if command else _make(words)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("stopped: nothing is left half-written\n")
        return 130


def _make(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    data = ensure(
        given.format,
        given.out,
        rows=given.rows,
        size=given.size,
        row_shape=parse_shape(given.shape, "--shape"),
        seed=given.seed,
        classes=given.classes,
        order=given.order,
        chunks=given.chunks,
        compression=given.compression,
        jobs=given.jobs,
        progress=not given.quiet,
    )
    sys.stdout.write(f"{data}\n{data.rows_path}\n")
    return 0


def _check(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="python -m data_gen check",
        description="Compare all rows and labels of every dataset in a folder with their right "
        "values, in constant memory. The exit status is 0 where all are right, 1 where some are "
        "not, 2 where there is nothing to check.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    given, status = parser.parse_args(words), 0
    for path in descriptions_in(given.folder):
        try:
            checked = check(described_data(path), progress=not given.quiet)
            sys.stdout.write(f"{checked}\n")
            status = status if checked.ok else 1
        except (ValueError, OSError) as error:  # the other datasets are checked all the same
            sys.stderr.write(f"error: {error}\n")
            status = 1
    return status


def _shuffle(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="python -m data_gen shuffle",
        description="Write the rows of a .npy or HDF5 file to a new one in random order, once, in "
        "constant memory. In HDF5, all datasets with as many rows as the largest are shuffled "
        "together, and all else is copied.",
    )
    parser.add_argument("source", metavar="IN", help="a .npy or an HDF5 file")
    parser.add_argument("target", metavar="OUT", help="the new file, of the same format")
    parser.add_argument(
        "--also",
        nargs=2,
        action="append",
        default=[],
        metavar=("IN", "OUT"),
        help="a further file with as many rows, as the labels of a .npy file (may be repeated)",
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same order (default: 0)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it is there")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    given = parser.parse_args(words)
    sources = [given.source, *(source for source, _ in given.also)]
    if twice := [source for source in sources if sources.count(source) > 1]:
        parser.error(f"{twice[0]} is to be shuffled twice: name each file once")
    shuffled = shuffle(
        given.source,
        given.target,
        also=dict(given.also),
        seed=given.seed,
        overwrite=given.overwrite,
        progress=not given.quiet,
    )
    sys.stdout.write(f"{shuffled}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
