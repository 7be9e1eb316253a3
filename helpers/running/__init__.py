"""What stands behind `run`: a sandbox with a child and a watcher, and the state they share."""
