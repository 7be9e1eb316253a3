"""How one process, or a tree of them, is looked at on each system."""
