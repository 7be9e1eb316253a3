"""`%load_ext helpers` in a real kernel: the magic, the figures, the warm sandbox."""

from pathlib import Path

from notebook_tools import RUN_TYPE, execute, made_up, output_text

CELLS = [
    "%load_ext helpers\nfrom helpers import run\nfrom helpers.running.warm_pool import pool",
    "pool.waiting is not None and pool.waiting.is_ready()",
    "%%importable\nVALUE = 1",
    "%%importable\ndef double(number):\n    return 2 * number",
    "doubled = run(double, 21, ram_budget='512 MiB')\nprint(doubled.value)\ndoubled",
    "doubled",
    "%load_ext memory_profiler",
    "%mprun -f double double(1)",
]


def test_the_extension_brings_what_the_lessons_use(tmp_path: Path) -> None:
    notebook = execute(tmp_path / "made_up.ipynb", notebook=made_up(*CELLS))
    warm, _, _, ran, shown, _, profiled = notebook.cells[1:]
    assert output_text(warm) == "True"
    assert "42\n" in output_text(ran)
    # Its view has shown it: in the same cell it is words, in a later one a figure with its numbers.
    seen, last = (output.data for output in ran.outputs if "data" in output)
    assert RUN_TYPE in seen
    assert "text/html" not in last
    (bundle,) = [output.data for output in shown.outputs]
    assert "<img" in bundle["text/html"]
    assert bundle["text/plain"].startswith("double(): finished")
    assert bundle[RUN_TYPE]["outcome"] == "finished"
    # A pager's text stands below its cell, where it is saved.
    assert "Increment" in output_text(profiled)
    assert "    return 2 * number" in output_text(profiled)
