"""Snapshots and their contents."""
