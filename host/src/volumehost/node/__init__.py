"""The volume manager of one node: desired state, actual state, reconciler, operations, journal, reconstruction."""
