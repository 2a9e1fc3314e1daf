"""The node of a cluster, as far as its volume manager is concerned: attachments are made by a controller elsewhere."""
