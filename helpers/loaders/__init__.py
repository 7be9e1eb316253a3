"""From a file larger than RAM to shuffled batches: checked files, blocks read ahead, rows mixed."""
