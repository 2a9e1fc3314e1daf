"""Mounts a pod and dies in the third change of ownership. Usage: killed_in_a_walk.py ROOT POD, which is JSON."""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

from volumehost import VolumeManager
from volumehost.loader.events import NoProber

home = importlib.util.spec_from_file_location("node_conftest", Path(__file__).with_name("conftest.py"))
conftest = importlib.util.module_from_spec(home)
home.loader.exec_module(conftest)

calls = []
chown = os.chown


def die_in_the_third(*args, **options):
    calls.append(args)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return chown(*args, **options)


os.chown = die_in_the_third
root, pod = sys.argv[1:]
with VolumeManager(root, plugins=[conftest.Bind()], prober=NoProber()) as manager:
    manager.mount_pod(json.loads(pod), timeout=30)
