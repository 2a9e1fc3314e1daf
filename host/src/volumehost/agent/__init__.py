"""The daemon of one node: pods from static manifests and the store, control socket, health and metrics endpoints."""
