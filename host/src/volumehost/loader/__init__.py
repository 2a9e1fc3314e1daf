"""From entry points to loaded plugins: scanning, trust, loading, and :class:`VolumePluginManager`.

Import from the modules; this one stays empty so that a scan of the environment loads nothing else.
"""
