"""The CSI volume plugin of volumehost."""
