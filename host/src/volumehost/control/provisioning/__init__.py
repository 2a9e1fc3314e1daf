"""Volumes are made for claims, by drivers and plugins, and deleted."""
