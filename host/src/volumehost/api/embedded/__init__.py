"""The parts of the embedded store; use ``volumehost.api.store``."""
