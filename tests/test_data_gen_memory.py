"""Making data takes the same small amount of memory whatever its size."""

from pathlib import Path

import pytest
from talking import said_by

BUDGET = 150 << 20  # over what the imports take

MEASURE = """
import re, resource, sys
from pathlib import Path
import h5py
from data_gen import Recipe, check, ensure
def peak():  # HDF5 is written by a child
    own = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
    return 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
def everything_at_once(folder, size):
    recipe = Recipe(size // 512)
    recipe.rows(range(recipe.count))
imports, size = peak(), int(sys.argv[2])
{statement}
print(peak() - imports)
"""


def added_bytes(folder: Path, statement: str, size: int = 1 << 28) -> int:
    added = int(said_by(MEASURE.replace("{statement}", statement), folder, size))
    for path in folder.iterdir():
        path.unlink()  # large: not to be kept until the tests are over
    return added


pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def test_npy_takes_the_same_memory_at_a_quarter_and_at_one_gib(tmp_path: Path) -> None:
    make = "ensure('npy', sys.argv[1], size=size, jobs=2, progress=False)"
    quarter, one = (added_bytes(tmp_path, make, size) for size in (1 << 28, 1 << 30))
    assert one < BUDGET
    assert one < quarter + (16 << 20)


@pytest.mark.parametrize(
    "layout",
    [
        "'hdf5', chunks=(1024, 64, 64)",
        "'hdf5', chunks='auto', compression='lzf'",
        "'hdf5', chunks=(16384, 4, 4), compression='gzip:0', jobs=2",
        "'npy'",
    ],
)
def test_any_layout_is_made_and_checked_in_little_memory(tmp_path: Path, layout: str) -> None:
    options = "folder=sys.argv[1], size=size, row_shape=(64, 64), progress=False"
    make = f"made = ensure({layout}, {options}); assert check(made, progress=False).ok"
    assert added_bytes(tmp_path, make) < BUDGET


def test_the_measure_sees_a_maker_that_holds_everything(tmp_path: Path) -> None:
    assert added_bytes(tmp_path, "everything_at_once(sys.argv[1], size)") > BUDGET
