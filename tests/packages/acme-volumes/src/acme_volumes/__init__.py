"""Volumes by acme: scratch space in memory."""
