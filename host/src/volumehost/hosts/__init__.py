"""The implementations of the VolumeHost protocols and the directory layout that they share."""
