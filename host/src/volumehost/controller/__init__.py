"""The daemon of a cluster's controllers: leader election, the controllers of ``control`` over an API server, health."""
