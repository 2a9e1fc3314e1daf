"""The kernel's side of volumes: mount table, mounts, filesystems on devices, safe paths and safe removal."""
