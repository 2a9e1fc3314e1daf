"""How CSI drivers become known to this node: their sockets watched, their registration answered, their node published.

Nothing here imports grpc before a socket or an endpoint is there to be spoken to.
"""
