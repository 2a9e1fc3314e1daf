"""The attacher: VolumeAttachments to ControllerPublishVolume and back."""
