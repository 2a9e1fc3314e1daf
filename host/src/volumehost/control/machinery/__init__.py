"""What all controllers run on: queue, workers, watches, counting, what is their own word."""
