"""The first command of the README, as each kind of user gives it, in a folder with a space."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534
QUIET = "--no-browser --ServerApp.port=0 --ServerApp.port_retries=0"
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")


def user_can_run_python(user: int) -> bool:
    """Return whether a user may run this Python: root's own is often in a folder of root's."""
    try:
        return subprocess.run([sys.executable, "-c", ""], user=user, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the project with the environment of this one: it is set up already."""
    copy = tmp_path / "larger than ram"
    shutil.copytree(ROOT / "notebooks", copy / "notebooks")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, copy)
    (copy / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        (copy / ".venv" / entry.name).symlink_to(entry)
    (copy / ".venv" / ".ready").unlink(missing_ok=True)
    (copy / ".venv" / ".ready").touch()
    return copy


@pytest.mark.parametrize("user", [os.getuid(), NOBODY])
def test_make_lab_opens_the_workshop(user: int, folder: Path) -> None:
    if user != os.getuid() and (os.getuid() != 0 or not user_can_run_python(user)):
        pytest.skip("only root can become another user, and that one must see this Python")
    home = folder / "home"
    home.mkdir()
    for path in (*folder.parents[:2], folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    lab = subprocess.Popen(
        ["make", "lab", f"LAB_OPTIONS={QUIET}"],
        cwd=folder,
        env={**os.environ, "HOME": str(home), "JUPYTER_PLATFORM_DIRS": "0"},
        user=user if user != os.getuid() else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert lab.stdout is not None
    said = []
    for line in lab.stdout:
        said.append(line)
        if re.search(r"http://\S+/lab\?token", line):
            break
    else:
        pytest.fail("".join(said))
    os.killpg(lab.pid, signal.SIGTERM)
    with lab:
        lab.stdout.read()
