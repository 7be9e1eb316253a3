"""`run` in a script: of the script's own functions, as `multiprocessing` does it under spawn."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from torch.utils.data import DataLoader
from helpers import run
class Rows:
    def __len__(self): return 4
    def __getitem__(self, index): return index
def one_epoch(rows, workers):
    return rows, sum(map(int, DataLoader(rows, num_workers=workers))), sys.argv[1]
"""
CALL = """
record = run(one_epoch, Rows(), {workers}, start_method="spawn", ram_budget="2 GiB")
print(record.error or (type(record.value[0]) is Rows, *record.value[1:]))
"""
GUARD = "if __name__ == '__main__':" + CALL.replace("\n", "\n    ")


def said_by(folder: Path, *arguments: str, text: str = "") -> str:
    """Return the last line that Python says, run in `folder` with a text as its input."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=env, input=text, capture_output=True, text=True, check=False
    )
    return (done.stdout or done.stderr).splitlines()[-1]


@pytest.mark.parametrize("how", [["script.py"], ["-m", "script"]], ids=["by path", "by name"])
def test_a_function_of_a_script_runs_and_its_workers_find_it(
    tmp_path: Path, how: list[str]
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT + GUARD.format(workers=1))
    assert said_by(tmp_path, *how, "argument") == "(True, 6, 'argument')"


def test_a_script_without_a_guard_is_told_so_and_starts_no_chain(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT + CALL.format(workers=0))
    said = said_by(tmp_path, "script.py", "argument")
    assert said.startswith("RuntimeError: run was called while a new process imports the script")


@pytest.mark.parametrize("how", [["-c", SCRIPT + CALL.format(workers=0)], ["-"], ["package"]])
def test_a_function_that_no_file_has_is_to_be_put_into_one(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__main__.py").write_text(SCRIPT + GUARD.format(workers=0))
    said = said_by(tmp_path, *how, text=SCRIPT + CALL.format(workers=0))
    assert said.startswith("TypeError: one_epoch is not in a file that a fresh process could run")
    assert said.endswith("define it in a file of its own (not `-c`, standard input or __main__.py)")
