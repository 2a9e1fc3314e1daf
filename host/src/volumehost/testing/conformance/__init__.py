"""The conformance run for volume plugins: ``pytest --volume-plugin example.com/nfs --volume-spec pod.yaml``.

Each module ``*_checks`` holds checks of one concern; ``run`` turns them into pytest items.
"""
