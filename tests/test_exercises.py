"""The exercises of the lessons: each plausible wrong answer is refused with the hint that fits.

A wrong answer is the solution with some of its words exchanged. The right one is checked as readers
check theirs, in a child. So are wrong ones, where the child's end or what it reads is the hint.
"""

import ast
import importlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from notebook_tools import NOTEBOOKS, code_cells, python_source, read, tags
from wrong_answers_03 import ANSWERS as ANSWERS_03
from wrong_answers_04 import ANSWERS as ANSWERS_04
from wrong_answers_05 import ANSWERS as ANSWERS_05
from wrong_answers_06 import ANSWERS as ANSWERS_06
from wrong_answers_07 import ANSWERS as ANSWERS_07
from wrong_answers_08 import ANSWERS as ANSWERS_08

from data_gen import GeneratedData
from data_gen.recipe import Recipe
from helpers import checks
from helpers.checks import Check

SMALL = GeneratedData(  # the checks make files of their own
    Path("spectrograms.npy"), Path("spectrograms-labels.npy"), Recipe(5000, (64, 64))
)
MAPS, LOADS = '(self.path, mmap_mode="r")', "(self.path)"
ALL_ROWS = 'row = ((np.load(self.path, mmap_mode="r") - 0.5) / 2)[index]'
IN_ORDER = "rows[torch.randperm(len(rows))].split"
ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "01_load_everything 1": [
        ({}, ""),
        ({MAPS: LOADS}, "the first access reads 64 MiB of a file of 64 MiB"),
        ({'(path, mmap_mode="r")': "(path)"}, "the constructor reads 64 MiB of a file of 64 MiB"),
        ({"self.path =": "self.map = open(path)\n        self.path ="}, "is open after `__init__`"),
        ({"np.array(self.rows[index])": "self.rows[index]"}, "return a copy"),
        ({", int(self.labels[index])": ""}, "a ndarray: return (row, label)"),
        ({"int(self.labels[index])": "3"}, "every row gets the label 3"),
        ({"int(self.labels[index])": "torch.tensor(self.labels[index - 1])"}, "the row before"),
        ({"return self.length": "return self.length // 64 * 64"}, "and the data has 4,093 rows"),
    ],
    "01_load_everything 2": [
        ({}, ""),
        ({"(row - self.MEAN) /": "row - self.MEAN /"}, "is not (row - MEAN) / STD"),
        ({"0.5, 2.0": "0.0, 1.0"}, "is as in the file"),
        ({"return index, (": "return ("}, "a ndarray: return (index, row)"),
        ({"return index, (": "return -1, ("}, "is not (index, row)"),
        ({"index, row = super().__getitem__(index)": ALL_ROWS}, "every access reads"),
    ],
    "01_load_everything 3": [
        ({}, ""),
        ({"4 * 2 * 256": "256"}, "that is one batch"),
        ({"4 * 2 * 256": "2 * 256"}, "that is one worker"),
        ({"4 * 2 * 256": "4 * 256"}, "each worker prepares two"),
        ({"4 * 2 * 256": "4 * 4 * 2 * 256"}, "a uint8 takes one byte"),
        ({"2**20": "10**6"}, "308.281 is right in decimal MB: give it in MiB"),
    ],
    "02_mapped_and_starving 1": [
        ({}, ""),
        ({', "labels": None': ""}, "it pickles to 32.3 KiB after the first access"),
        ({'"rows": None, ': ""}, "MiB after the first access: leave what is open out of"),
        ({"**self.__dict__": '"path": self.path'}, "no attribute 'length', after pickling"),
        ({'"rows": None, "labels": None': '"rows": None, "path": None'}, "after the first access"),
        ({MAPS: LOADS}, "the first access reads 64 MiB of a file of 64 MiB"),
        ({"self.labels[index]": "self.labels[index - 1]"}, "that of the row before"),
    ],
    "02_mapped_and_starving 2": [
        ({}, ""),
        ({"torch.randperm(len(starts))": "torch.arange(len(starts))"}, "are neighbours in the"),
        ({"rows = rows[rows < length]": "pass"}, "missing, come twice, or lie beyond the end"),
        ({"rows < length]": "rows < length // 64 * 64]"}, "missing, come twice, or lie beyond"),
        ({".split(batch)": ".split(block)"}, "the batches do not have 64 rows each"),
        ({IN_ORDER: "rows.split"}, "rows of 1 block(s): mix the rows of 8"),
        ({").flatten()": ").T.flatten()", IN_ORDER: "rows.split"}, "come in file order"),
        ({".split(mix)": ".split(len(starts))"}, "blocks in memory: more than 8"),
        ({"starts = torch": "torch.manual_seed(0)\n    starts = torch"}, "two epochs come in"),
        ({"return batches": "return sum(batches, [])"}, "a list of batches, each a list"),
        ({"return batches": "while True: ..."}, "not finished after 5 s: is there a loop"),
    ],
    "02_mapped_and_starving 3": [
        ({}, ""),
        ({"128 / 2": "128"}, "a row is 2 KiB"),
        ({"128 / 2": "2 / 128"}, "turn it round"),
        ({"128 / 2": "1"}, "that would be file order"),
        ({"128 / 2": "128 / 4"}, "a row is no page"),
        ({"128 / 2": "128 * 1024"}, "how many times a row is it?"),
    ],
    **ANSWERS_03,
    **ANSWERS_04,
    **ANSWERS_05,
    **ANSWERS_06,
    **ANSWERS_07,
    **ANSWERS_08,
}


# Their checks look only at what is returned: a child for each would take minutes, and find no more.
HERE = {
    *("02_mapped_and_starving 2", "06_refcount_bloat 2"),
    *(f"07_ordered_stream {number}" for number in (1, 2, 3)),
    *(f"08_measure_dont_guess {number}" for number in (2, 3)),
}
ENDS_ITS_CHILD = ("killed", "not finished")


@pytest.mark.parametrize(
    ("exercise", "changes", "hint"),
    [(name, changes, hint) for name, table in ANSWERS.items() for changes, hint in table],
)
def test_a_wrong_answer_is_refused_with_the_hint_that_fits(
    exercise: str, changes: dict[str, str], hint: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(checks, "SECONDS", 5)
    in_child = exercise not in HERE or not hint or hint.startswith(ENDS_ITS_CHILD)
    found = checked(exercise, changes, tmp_path, monkeypatch, in_child=in_child)
    assert bool(found) is (not hint), found
    assert hint in found.hint


def checked(
    exercise: str, changes: dict[str, str], folder: Path, monkeypatch: Any, *, in_child: bool
) -> Check:
    """Return what the check of an exercise says to its solution with some words exchanged."""
    lesson, number = exercise.split()
    cells = code_cells(read(NOTEBOOKS / f"{lesson}.ipynb"))
    place = [i for i, cell in enumerate(cells) if "solution" in tags(cell)][int(number) - 1]
    before = [cell for cell in cells[:place] if not tags(cell) & {"exercise", "solution", "check"}]
    attempt = python_source(cells[place])
    for old, new in changes.items():
        assert old in attempt
        attempt = attempt.replace(old, new)
    parts = [python_source(cell) for cell in before if "%%importable" in cell.source]
    name = re.sub(r"\W", "_", f"attempt_{folder.name}")
    (folder / f"{name}.py").write_text("\n".join([*parts, attempt]))
    monkeypatch.syspath_prepend(str(folder))
    names = {
        **vars(importlib.import_module(name)),
        "small": SMALL,
        "check": checks.check if in_child else check_here,
    }
    names |= {"check_dataset": checks.check_dataset, "check_value": checks.check_value}
    for cell in before:
        if cell.source.startswith("from helpers.dataset_properties"):
            exec(cell.source, names)
    found: Check = shown(cells[place + 1].source, names)
    return found


def check_here(title: str, find_mistake: Callable[..., str | None], *attempt: Any) -> Check:
    """Check as `check` does, in this process."""
    return checks.check(title, partial(find_mistake, *attempt))


def shown(source: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line."""
    *lines, last = ast.parse(source).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(lines, []), "check", "exec"), names)
    return eval(compile(ast.Expression(last.value), "check", "eval"), names)
