"""Words about what the node does for a volume: where it is in its sequence, and what would be done."""
