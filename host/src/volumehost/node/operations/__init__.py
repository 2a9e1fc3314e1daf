"""What is done to a volume: attach, mount, map, grow, unmount, unmap, detach, each with its error states."""
