"""What the containers of a pod get of its volumes."""
