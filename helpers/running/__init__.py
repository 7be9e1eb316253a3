"""What stands behind `run`: the child, the watcher beside it, the board between them, the spare."""
