"""How figures and live views are drawn: style, panels, frames, and what the front end can show."""
