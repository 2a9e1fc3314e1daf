"""Proofs that the node survives: processes are killed, drivers misbehave, machines reboot, disks fill, files rot.

``make storm`` runs them and prints their figures; ``python -m storm`` takes single ones. Needs root.
"""
