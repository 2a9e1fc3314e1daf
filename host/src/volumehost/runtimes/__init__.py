"""What a container of a mounted pod gets, said in the words of a container runtime. Called by ``volumehost export``.

One module for each runtime; each takes a :class:`volumehost.node.workloads.containers.ContainerMounts` and starts
nothing.
"""
