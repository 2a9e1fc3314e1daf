"""From entry points to loaded plugins: scanning, trust, loading, and :class:`VolumePluginManager`.

Import from the modules; this one stays empty so that a scan of the environment loads nothing else. What every
command loads is kept small: plain values here are named tuples, whose classes cost an eighth of a dataclass's to make.
"""
