"""The controllers: what a cluster's control plane and CSI sidecars do for volumes, without a cluster."""
