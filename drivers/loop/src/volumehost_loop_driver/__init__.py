"""A CSI driver for one machine: volumes are files on loop devices."""
