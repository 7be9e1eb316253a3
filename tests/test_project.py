"""What the project's own files promise each other."""

import re
import subprocess
import tomllib
import types
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from talking import said_by

import helpers

ROOT = Path(__file__).resolve().parents[1]
# What conda-forge calls them.
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


def requirements(*extras: str) -> dict[str, SpecifierSet]:
    """Return what these extras ask for, without the project's own extras among them."""
    lists: dict[str, list[str]] = project()["optional-dependencies"]  # type: ignore[assignment]
    wanted = [Requirement(line) for extra in extras for line in lists[extra]]
    return {each.name: each.specifier for each in wanted if each.name != project()["name"]}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("-", "_"): version for name, version in pins}


def test_environment_yml_has_the_packages_and_bounds_of_pyproject() -> None:
    text = (ROOT / "environment.yml").read_text()
    assert text.endswith("--editable .\n")
    lines = re.findall(r"^  - (\S+)(?: (\S+))?$", text.partition("dependencies:")[2], re.MULTILINE)
    conda = {name: SpecifierSet(bounds) for name, bounds in lines}
    assert conda.pop("python") == SpecifierSet(str(project()["requires-python"]))
    assert conda.pop("pip") == SpecifierSet()
    wanted = requirements("loaders", "workshop")
    renamed = {CONDA_NAMES.get(name, name): bounds for name, bounds in wanted.items()}
    assert {name: bounds for name, bounds in conda.items() if name != "pip:"} == renamed


def test_the_tested_set_lies_within_the_bounds() -> None:
    pins = constraints()
    for name, bounds in requirements("loaders", "workshop", "test").items():
        assert bounds.contains(pins[name.lower().replace("-", "_")]), name


def test_the_tested_set_is_what_runs_here() -> None:
    for name in ("torch", "numpy", "h5py", "ipykernel", "jupyterlab"):
        assert version(name).partition("+")[0] == constraints()[name]


@pytest.mark.parametrize("name", ["helpers", "data_gen"])
def test_importing_a_package_imports_nothing_heavy(name: str) -> None:
    code = f"import sys, {name}; print({{'torch', 'matplotlib', 'h5py'}} & set(sys.modules))"
    assert said_by(code) == "set()"


def test_the_loaders_need_no_more_than_their_own_extra(tmp_path: Path) -> None:
    """A process that cannot import what only the workshop asks for reads a file all the same."""
    only_there = requirements("workshop").keys() | {"IPython", "ipykernel", "memory_profiler"}
    code = f"""
import sys, warnings
warnings.simplefilter("ignore")
for name in {sorted(name.replace("-", "_") for name in only_there)}:
    sys.modules[name] = None
import numpy, torch
from helpers import BlockShuffleSampler, NpyDataset, ShuffledBlocks, ShuffleBuffer
from data_gen import ensure
path = ensure("npy", {str(tmp_path)!r}, rows=1000, progress=False).rows_path
assert sum(len(rows) for rows in ShuffledBlocks(path)) == len(NpyDataset(path)) == 1000
"""
    said_by(code)


def test_every_public_name_loads_and_is_no_module_and_is_known_to_type_checkers() -> None:
    source = (ROOT / "helpers" / "__init__.py").read_text()
    assert {*helpers._HOMES} == {*helpers.__all__}
    for name, home in helpers._HOMES.items():
        assert not isinstance(getattr(helpers, name), types.ModuleType), name
        assert f"from helpers.{home} import {name} as {name}" in source
    assert not {path.stem for path in (ROOT / "helpers").rglob("*.py")} & {*helpers.__all__}


def test_a_wrong_name_is_answered_with_the_right_ones() -> None:
    with pytest.raises(AttributeError, match=r"helpers has no 'trak'; it has .*track"):
        helpers.trak  # noqa: B018


def test_helpers_never_import_data_gen() -> None:
    for path in (ROOT / "helpers").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) data_gen", path.read_text(), re.MULTILINE), path


def test_no_file_carries_a_path_of_one_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    words = [rf"(?<![\w.])/{top}/" for top in ("root", "home", "Users", "work")]
    words += ["files.python" + "hosted", "pypi" + r"\.org", "deb." + "debian"]
    for name in listed:
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".ipynb", ".md", ".yml", ".toml", ".txt", ""}:
            found = re.search("|".join(words), path.read_text(encoding="utf-8"))
            assert not found, f"{name} carries {found[0] if found else ''}"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_readme_and_guide_list_every_notebook(path: Path) -> None:
    assert f"(notebooks/{path.name})" in (ROOT / "README.md").read_text()
    guide = (ROOT / "notebooks" / "instructor_guide.md").read_text()
    assert re.search(rf"^## {path.name[:2]} · ", guide, re.MULTILINE)
