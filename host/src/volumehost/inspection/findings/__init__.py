"""Judges what a survey saw: one module for each group of findings."""
