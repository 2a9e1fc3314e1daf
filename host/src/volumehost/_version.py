"""The version of the host, in one place: hatchling reads it from here, and so does the command line."""

__version__ = "0.1.0"
