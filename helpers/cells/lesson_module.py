"""One module of a running notebook: its sections, its file, and its namespace.

In the notebook only a new section is executed, so the classes of other cells stay the same objects
and their instances can still be pickled. Other processes import the file, which is always whole.
"""

import linecache
import sys
import time
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from types import CodeType, ModuleType

from helpers.cells.lesson_folder import LessonFolder
from helpers.cells.sections import Arrangement, Section, arrange, defined_by, file_text


class LessonModule:
    """A module that grows and changes cell by cell."""

    def __init__(self, name: str, folder: LessonFolder) -> None:
        self.name = name
        self.path = str(folder.path / f"{name}.py")
        self.sections: tuple[Section, ...] = ()
        self._folder = folder
        self._changed = 0
        spec = spec_from_file_location(name, self.path)
        if spec is None:
            raise ImportError(f"{name!r} cannot be a module: choose another name")
        self.module: ModuleType = module_from_spec(spec)
        sys.modules[name] = self.module

    def names_beside(self, section: Section) -> frozenset[str]:
        """Return the names that the module has from cells which the section does not replace."""
        return defined_by([s for s in self.sections if not section.replaces(s)])

    def add(self, section: Section) -> Arrangement:
        """Execute a section and write the file; on any exception leave both as they were.

        After an exception the failed text stays in `linecache`, so that its traceback can be drawn;
        `forget_lines` ends that.
        """
        arrangement = arrange(self.sections, section)
        text = file_text(arrangement.sections)
        linecache.cache[self.path] = (len(text), None, text.splitlines(keepends=True), self.path)
        namespace = self.module.__dict__
        before = dict(namespace)
        others = [s for s in arrangement.sections if s is not arrangement.new]
        for name in defined_by(self.sections) - defined_by(others):
            namespace.pop(name, None)
        try:
            exec(self._compiled(arrangement.new), namespace)  # noqa: S102 - the reader's own cell
            # Whole seconds that always grow: LessonFolder.write says why.
            self._changed = max(self._changed + 1, int(time.time()))
            self._folder.write(self.name, text, seconds=self._changed)
        except BaseException:  # an interrupt too: file and module must agree
            namespace.clear()
            namespace.update(before)
            raise
        self.forget_lines()
        self.sections = arrangement.sections
        return arrangement

    def forget_lines(self) -> None:
        """Let tracebacks and `inspect` read the file again."""
        linecache.cache.pop(self.path, None)

    def _compiled(self, section: Section) -> CodeType:
        """Compile a section alone, with the line numbers that it has in the file."""
        with warnings.catch_warnings(action="ignore"):  # they were shown when the cell was checked
            code: CodeType = compile(file_text([section]), self.path, "exec", dont_inherit=True)
        return code
