"""What lies under a root directory, a kubelet's too: what is mounted, orphaned, leaked or corrupted, and its repair."""
