"""Status of each volume of each pod, from the running manager or from its files."""
