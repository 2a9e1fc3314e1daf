"""CSI in Python: typed bindings, a kit to write drivers with, a scriptable fake driver."""
