"""What the daemons, ``volumehost agent`` and ``volumehost controller``, have in common: signals, HTTP, systemd."""
