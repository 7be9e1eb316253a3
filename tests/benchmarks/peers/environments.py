"""An environment of its own for each peer: they want different versions of the same packages.

Made with venv and pip when first asked for. The pins lie in requirements/, a file for each peer;
what common.txt pins (torch above all) is installed first and bounds the rest.
"""

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

_REQUIREMENTS = Path(__file__).with_name("requirements")
_COMMON = _REQUIREMENTS / "common.txt"
_PATIENCE = 1800  # seconds for pip


class NotInstalledError(Exception):
    """An environment that cannot be made here. The message is the reason that the table gives."""


def find_python(name: str, folder: Path) -> Path:
    """Return the Python of a peer's environment, made now if it is not there or has other pins."""
    if not name:
        return Path(sys.executable)
    home, wanted = folder / name, _REQUIREMENTS / f"{name}.txt"
    python, stamp = home / "bin" / "python", home / "pins.sha256"
    pins = hashlib.sha256(_COMMON.read_bytes() + wanted.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == pins:
        return python
    shutil.rmtree(home, ignore_errors=True)
    try:
        _make(home, python, wanted)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)  # a part of an environment serves nobody
        raise
    stamp.write_text(pins)
    return python


def _make(home: Path, python: Path, wanted: Path) -> None:
    sys.stderr.write(f"making the environment of {wanted.stem}\n")
    venv.create(home, with_pip=True)
    for requirements in (_COMMON, wanted):
        _install(python, requirements)


def _install(python: Path, requirements: Path) -> None:
    words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*words, "--constraint", str(_COMMON), "--requirement", str(requirements)],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"pip took longer than {_PATIENCE} s") from None
    if done.returncode:
        raise NotInstalledError(_reason(done.stderr))


def _reason(said: str) -> str:
    """Return pip's last line that says what is wrong, shortened."""
    lines = [line for line in said.splitlines() if line.startswith("ERROR:")]
    line = lines[-1] if lines else (said.strip().splitlines() or ["pip failed"])[-1]
    return line.removeprefix("ERROR:").strip()[:160]
