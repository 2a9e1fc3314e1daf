"""API objects: manifests in, the ApiClient protocol, the embedded store, listers. Loaded lazily by everyone else."""
