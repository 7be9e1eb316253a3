"""A real JupyterLab and a real browser: started for one test, and gone after it.

Commands go to JupyterLab's own application object rather than to menus, and the selectors are those
that its themes rely on, so a new release rarely breaks them.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import psutil
import pytest
from notebook_tools import NOTEBOOKS

_TOKEN = "only-for-tests"
_SETTINGS = {
    # All cells are in the page, also those that are scrolled away.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
_CHROMIUM = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)

# Notes each picture of a cell as it comes: a short experiment ends before a test looks at it.
_NOTE_PICTURES = """() => {
    const seen = (window.picturesSeen = new WeakMap());
    const note = (image) => {
        const cell = image.closest(".jp-Cell");
        if (!cell) return;
        if (!seen.has(cell)) seen.set(cell, new Set());
        seen.get(cell).add(image.src);
    };
    const imagesIn = (node) =>
        node.tagName === "IMG" ? [node] : [...(node.querySelectorAll?.("img") ?? [])];
    new MutationObserver((changes) => {
        for (const { type, target, addedNodes } of changes) {
            const nodes = type === "attributes" ? [target] : [...addedNodes];
            nodes.flatMap(imagesIn).forEach(note);
        }
    }).observe(document, { childList: true, subtree: true, attributeFilter: ["src"] });
}"""

# A kernel can be idle before its notebook is the one that commands work on, where starting is slow.
_SETTLE = """async () => {
    const { restored, shell } = window.jupyterapp;
    await restored;
    const notebook = shell.currentWidget;
    await Promise.all([notebook.context.ready, notebook.sessionContext.ready, notebook.revealed]);
    shell.activateById(notebook.id);
}"""

# A cell that is to run shows [*] at once. Where none does, the command fell on nothing.
_RUN = """async (command) => {
    const prompts = () => [...document.querySelectorAll(".jp-InputPrompt")]
        .map((prompt) => prompt.innerText).filter((text) => /[*\\d]/.test(text)).join();
    const before = prompts(), end = Date.now() + 60000;
    while (prompts() === before) {
        if (Date.now() > end) throw new Error(`${command} ran no cell`);
        window.jupyterapp.commands.execute(command);
        const again = Date.now() + 10000;
        while (prompts() === before && Date.now() < again) await new Promise(requestAnimationFrame);
    }
}"""


@dataclass
class LabPage:
    """One notebook, open in JupyterLab."""

    page: Any  # playwright's

    def run(self, command: str = "notebook:run-all-cells") -> None:
        """Start a command that runs cells, see that one has begun, and do not wait for its end."""
        self.page.evaluate(_SETTLE)
        self.page.wait_for_function(
            "name => window.jupyterapp.commands.isEnabled(name)", arg=command, timeout=60_000
        )
        self.page.evaluate(_RUN, command)

    def wait_for_kernel(self) -> None:
        """Wait until the kernel is idle."""
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session"
            "?.kernel?.status === 'idle'",
            timeout=60_000,
        )

    def wait_for_cell(self, index: int, seconds: float = 60) -> None:
        """Wait until a cell has run: its prompt shows a number. (Kernels idle between cells.)"""
        prompt = self.cell(index).locator(".jp-InputPrompt")
        prompt.filter(has_text=re.compile(r"\d")).wait_for(timeout=seconds * 1000)

    def wait_for_frames(self, cell: Any, frames: int, seconds: float = 60) -> None:
        """Wait until a cell has shown so many different pictures since the page was opened."""
        self.page.wait_for_function(
            "([cell, frames]) => window.picturesSeen.get(cell)?.size >= frames",
            arg=[cell.element_handle(), frames],
            timeout=seconds * 1000,
        )

    def cell(self, index: int) -> Any:
        """Return the locator of a cell, counted from 0."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium."""
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("no chromium on PATH: install it to run the browser tests")
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    home = tmp_path_factory.mktemp("home")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable,
            args=_CHROMIUM.split(),
            env={**os.environ, "HOME": str(home)},
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_notebook(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Path], LabPage]]:
    """A function that opens a notebook in a JupyterLab of its own, with its kernel ready.

    The server and its kernels see the environment variables of the moment when it is called.
    """
    started: list[subprocess.Popen[bytes]] = []

    def open_it(path: Path) -> LabPage:
        port = _free_port()
        env = _environment(tmp_path_factory.mktemp("jupyter"))
        command = _lab_command(path.parent, port)
        started.append(subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL))
        address = f"http://127.0.0.1:{port}"
        _wait_until_it_answers(f"{address}/api?token={_TOKEN}", started[-1])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.add_init_script(f"({_NOTE_PICTURES})()")
        page.goto(f"{address}/lab/tree/{path.name}?token={_TOKEN}")
        lab_page = LabPage(page)
        lab_page.wait_for_kernel()
        return lab_page

    yield open_it
    for page in browser.contexts[-1].pages if browser.contexts else ():
        print(page.url, page.locator("body").inner_text(), sep="\n")  # shown where a test failed
    for server in started:
        _end(server)


@pytest.fixture
def open_lesson(
    open_notebook: Callable[[Path], LabPage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Any], LabPage]:
    """A function that opens what a test has left of a lesson, by name, at test scale."""

    def open_it(name: str, lesson: Any) -> LabPage:
        monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "test")
        monkeypatch.setenv("LARGER_THAN_RAM_DATA", str(NOTEBOOKS.parent / "data"))
        nbformat.write(lesson, tmp_path / name)
        return open_notebook(tmp_path / name)

    return open_it


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _lab_command(root: Path, port: int) -> list[str]:
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser", *as_root),
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={_TOKEN}",
    ]


def _environment(private: Path) -> dict[str, str]:
    """Return an environment in which the reader's own Jupyter settings do not count."""
    settings = private / "settings"
    for name, values in _SETTINGS.items():
        file = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    return {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(private / "workspaces"),
        "IPYTHONDIR": str(private / "ipython"),
    }


def _wait_until_it_answers(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)  # nothing tells when a server starts to listen
    raise RuntimeError(f"JupyterLab did not answer at {url} (exit code {server.poll()})")


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server and its kernels, and whatever they have left."""
    family = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
    server.terminate()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    for process in psutil.wait_procs(family, timeout=5)[1]:
        process.kill()
    psutil.wait_procs(family, timeout=5)
