"""Keep what the reader expects before the run, so that the figure can show it beside the result."""
