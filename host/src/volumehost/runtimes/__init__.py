"""What a container runtime is given for a pod's volumes: OCI, podman, docker, bwrap."""
