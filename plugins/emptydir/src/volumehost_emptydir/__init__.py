"""emptyDir volumes: scratch space that lives as long as its pod."""
