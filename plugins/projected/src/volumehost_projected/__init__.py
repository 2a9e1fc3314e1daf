"""configMap, secret, downwardAPI and projected volumes: files from the API, swapped atomically when it changes."""
