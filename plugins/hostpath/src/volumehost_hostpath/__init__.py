"""hostPath volumes: a path of the node, shown to a pod. The entry point names ``plugin.HostPathPlugin``."""
