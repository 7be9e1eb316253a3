"""The report on a machine: rows, and how they read in a terminal and in a notebook."""

from dataclasses import dataclass
from enum import StrEnum
from html import escape


class State(StrEnum):
    """What a row asks of the reader, in a symbol and a word, so that colour is only a help."""

    READY = "✓ ready"
    NOTE = "! note"
    FIX = "✗ fix"


# Mid-tones: 4 to 1 or more against a white page and against a near-black one.
_COLOURS = {State.READY: "#00875f", State.NOTE: "#a66b00", State.FIX: "#d0470f"}
_CELL = "text-align:left; vertical-align:top; padding:2px 12px 2px 0"


@dataclass(frozen=True)
class Row:
    """One thing that lessons depend on."""

    what: str
    value: str
    state: State = State.READY
    hint: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the lessons can start without a change here."""
        return self.state is not State.FIX


@dataclass(frozen=True)
class MachineReport:
    """All rows. Its repr is a plain table; a notebook shows it as an HTML table."""

    rows: tuple[Row, ...]

    @property
    def summary(self) -> str:
        """Return the whole report in one sentence."""
        wrong = [row.what for row in self.rows if not row.ok]
        return f"Fix first: {', '.join(wrong)}." if wrong else "This machine is ready."

    def __repr__(self) -> str:
        widest = max((len(row.what) for row in self.rows), default=0)
        lines = []
        for row in self.rows:
            lines.append(f"{row.state:<8} {row.what:<{widest}}  {row.value}")
            lines += [f"{'':<{widest + 11}}({row.hint})"] if row.hint else []
        return "\n".join([*lines, self.summary])

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col" style="{_CELL}">{name}</th>' for name in ("", "what", "here", "")
        )
        body = "".join(_html(row) for row in self.rows)
        return (
            f'<table style="color:inherit; background:transparent"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table><p><b>{escape(self.summary)}</b></p>"
        )


def _html(row: Row) -> str:
    state = f"{_CELL}; color:{_COLOURS[row.state]}; font-weight:bold; white-space:nowrap"
    cells = "".join(
        f'<td style="{_CELL}">{escape(text)}</td>' for text in (row.what, row.value, row.hint)
    )
    return f'<tr><td style="{state}">{row.state}</td>{cells}</tr>'
