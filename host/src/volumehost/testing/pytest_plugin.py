"""The pytest plugin that ``volumehost`` installs: fixtures for authors of volume plugins."""
