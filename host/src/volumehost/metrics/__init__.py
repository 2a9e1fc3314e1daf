"""Metrics of a node under the kubelet's names, for Prometheus."""
