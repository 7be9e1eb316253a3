"""macOS and Windows: what they lack is missed by no import."""

import subprocess
import sys

# What Windows has not, macOS has not, or neither.
HIDES = """
import importlib, os, pkgutil, signal, sys

import psutil, torch  # they are built for this system and may use all of it

# Not fcntl: where it is used, the system's name decides.
for name in ("grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getpgid", "getsid", "killpg", "mkfifo", "posix_fadvise", "pread",
             "register_at_fork", "sched_getaffinity", "setsid", "statvfs", "sysconf", "wait4"):
    vars(os).pop(name, None)
for name in ("SIGALRM", "SIGKILL", "SIGHUP", "SIGUSR1", "pthread_sigmask"):
    vars(signal).pop(name, None)
"""
IMPORTS = """
import helpers
names = [module.name for module in pkgutil.iter_modules(helpers.__path__)]
for name in names:
    importlib.import_module(f"helpers.{name}")
for name in helpers.__all__:
    getattr(helpers, name)
print(len(names))
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_module_can_be_imported_there() -> None:
    done = python(HIDES + IMPORTS)
    assert done.stderr == ""
    assert int(done.stdout) > 20


def test_an_import_of_what_is_missing_would_be_seen() -> None:
    assert "resource" in python(HIDES + "import resource").stderr
    assert "has no attribute 'fork'" in python(HIDES + "os.fork()").stderr
