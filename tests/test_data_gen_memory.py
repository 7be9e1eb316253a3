"""Making data takes the same small amount of memory whatever its size."""

import subprocess
import sys
from pathlib import Path

import pytest

BUDGET = 150 << 20  # over what the imports take

MEASURE = """
import re, resource, sys
from pathlib import Path
import h5py
from data_gen import Recipe, ensure
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


def added_bytes(folder: Path, statement: str, size: int) -> int:
    code = MEASURE.replace("{statement}", statement)
    command = [sys.executable, "-c", code, str(folder), str(size)]
    added = int(subprocess.check_output(command))
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
        "chunks=(1024, 64, 64)",
        "chunks='auto', compression='lzf'",
        "chunks=(16384, 4, 4), compression='gzip:0', jobs=2",
    ],
)
def test_hdf5_takes_little_memory_in_any_layout(tmp_path: Path, layout: str) -> None:
    make = f"ensure('hdf5', sys.argv[1], size=size, row_shape=(64, 64), {layout}, progress=False)"
    assert added_bytes(tmp_path, make, 1 << 28) < BUDGET


@pytest.mark.parametrize("layout", ["'npy'", "'hdf5', chunks=(16384, 4, 4), compression='lzf'"])
def test_a_check_takes_little_memory_in_any_layout(tmp_path: Path, layout: str) -> None:
    name, *options = layout.split(", ", 1)
    options = [*options, "size=size, row_shape=(64, 64), progress=False"]
    make = f"data = ensure({name}, sys.argv[1], {', '.join(options)}); from data_gen import check; "
    assert added_bytes(tmp_path, f"{make} assert check(data, progress=False).ok", 1 << 28) < BUDGET


def test_the_measure_sees_a_maker_that_holds_everything(tmp_path: Path) -> None:
    assert added_bytes(tmp_path, "everything_at_once(sys.argv[1], size)", 1 << 28) > BUDGET
