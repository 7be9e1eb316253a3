"""What stands behind the take-home loaders: checked files, blocks read ahead, rows mixed."""
