"""A CSI driver for tests: does what ``behaviour.json`` beside its data says. Installed under several versions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid

VERSION = "1.0"


def main() -> int:
    data = os.environ["VOLUMEHOST_DRIVER_DATA_DIR"]
    behaviour = {}
    if os.path.exists(f"{data}/behaviour.json"):
        with open(f"{data}/behaviour.json") as file:
            behaviour = json.load(file)
    with open(f"{data}/starts", "a") as file:
        file.write(f"{os.getpid()} {VERSION}\n")
    for line in behaviour.get("print", []):
        print(line, flush=True)
    if behaviour.get("child"):
        child = subprocess.Popen(["sleep", "1000"])
        with open(f"{data}/child", "w") as file:
            file.write(str(child.pid))
    if "exit" in behaviour:
        return behaviour["exit"]
    if behaviour.get("hang"):
        signal.pause()
    return serve(behaviour, data)


def serve(behaviour, data) -> int:
    from volumehost_csi_kit import csi
    from volumehost_csi_kit.server import Driver, FailedPreconditionError, UnavailableError
    from volumehost_csi_kit.server import serve as serve_kit

    class Controller:
        capabilities = {"LIST_VOLUMES"} if behaviour.get("lies") else set()

        def create_volume(self, request, context):
            if "slow_call" in behaviour:
                with open(f"{data}/calling", "w") as file:
                    file.write("x")
                while not os.path.exists(f"{data}/go"):
                    time.sleep(0.01)
            return csi.CreateVolumeResponse(
                volume=csi.Volume(volume_id=str(uuid.uuid4()), capacity_bytes=request.capacity_range.required_bytes)
            )

        def delete_volume(self, request, context):
            if request.volume_id == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if request.volume_id == "busy":
                raise FailedPreconditionError(f"in use, {request.secrets.get('key', '')}")

    class Node:
        def node_get_info(self, request, context):
            if os.path.exists(f"{data}/unavailable"):
                raise UnavailableError("not yet")
            return csi.NodeGetInfoResponse(node_id=behaviour.get("node_id", "node-1"), max_volumes_per_node=7)

        def node_publish_volume(self, request, context):
            return csi.NodePublishVolumeResponse()

        def node_unpublish_volume(self, request, context):
            return csi.NodeUnpublishVolumeResponse()

    def ready() -> bool:
        return not os.path.exists(f"{data}/not_ready")

    driver = Driver(
        behaviour.get("name", os.environ["VOLUMEHOST_DRIVER_NAME"]),
        VERSION,
        controller=Controller(),
        node=Node(),
        ready=ready,
    )
    if behaviour.get("ignore_term"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    return serve_kit(driver, [], grace_seconds=5)


if __name__ == "__main__":
    sys.exit(main())
