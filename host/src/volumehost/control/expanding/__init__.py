"""Volumes grow, and take other parameters."""
