"""What happens to a world at random between two kills: pods come, change and go, commands run, drivers are killed."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Sequence
from itertools import count

from storm.kept import KeptMounts
from storm.wishes import CLAIMED, KINDS, Pod, Volume
from storm.world import World
from volumehost.errors import VolumeHostError

#: So many pods at most come and go beside those that stay.
_MOST = 6


class Actions:
    """Acts on one world, by its random numbers. Tells what it does in the world's story."""

    def __init__(self, world: World, kept: KeptMounts) -> None:
        self._world = world
        self._kept = kept
        self._numbers = count(1)
        self._commands: list[tuple[str, str, subprocess.Popen[bytes]]] = []
        self.done: dict[str, int] = {}
        #: Pods that stay to the end.
        self.staying: set[str] = set()

    # --- chosen by whoever calls ------------------------------------------------------------------------------------

    def new_pod(
        self,
        *kinds: str,
        static: bool = False,
        sub_path: str = "",
        claims: tuple[str, ...] = (),
        groups: Sequence[int | None] = (None, None, 2000),
    ) -> Pod:
        """A pod of new volumes of these kinds, and of the claims that are there already; it is wanted from now on."""
        number = next(self._numbers)
        volumes = [
            Volume(f"v{index}", kind, f"c{number}-{index}" if kind in CLAIMED else "", sub_path)
            for index, kind in enumerate(kinds)
        ]
        volumes += [Volume(name, self._world.claims[name], name) for name in claims]
        group = self._world.random.choice(groups)
        pod = Pod(f"p{number}", tuple(volumes), static=static, fs_group=group)
        self._world.tell(f"want {pod.name}: {', '.join(volume.kind for volume in volumes)}")
        self._world.want(pod)
        return pod

    def end(self, name: str) -> None:
        """The pod ends by the word that its workload is over."""
        self._world.tell(f"end {name}")
        self._kept.forget(name)
        self._world.end(name)

    def drop_unused_claims(self) -> None:
        """Delete the claims of no pod."""
        for name in [name for name in self._world.claims if not self._world.users(name)]:
            self._world.tell(f"delete claim {name}")
            self._world.forget_claim(name)

    def thin_out(self) -> None:
        """End the oldest of the pods that do not stay, where there are many, and delete claims of no pod."""
        leaving = [name for name in self._world.pods if name not in self.staying]
        for name in leaving[:-_MOST]:
            self.end(name)
        self.drop_unused_claims()

    # --- by chance --------------------------------------------------------------------------------------------------

    def act(self) -> None:
        """One thing, by chance."""
        leaving = [name for name in self._world.pods if name not in self.staying]
        choices: list[tuple[Callable[[], None], int]] = [
            (self._come, 5 if len(leaving) < _MOST else 0),
            (self._go, 4 if leaving else 0),
            (self._share, 1 if len(leaving) < _MOST else 0),
            (self._change, 1),
            (self.drop_unused_claims, 1),
            (self._grow, 1),
            (self._kill_a_driver, 1),
            (self._mount_by_command, 1 if len(leaving) < _MOST else 0),
            (self._unmount_by_command, 1 if leaving else 0),
        ]
        (action,) = self._world.random.choices([a for a, _ in choices], [weight for _, weight in choices])
        self.done[action.__name__.strip("_")] = self.done.get(action.__name__.strip("_"), 0) + 1
        action()

    def _come(self) -> None:
        random = self._world.random
        kinds = random.sample(KINDS, random.randint(1, 4))
        self.new_pod(*kinds, static=random.random() < 0.4, sub_path="a/b" if random.random() < 0.3 else "")

    def _go(self) -> None:
        self.end(self._world.random.choice([name for name in self._world.pods if name not in self.staying]))

    def _share(self) -> None:
        """Another pod uses what one has already."""
        claims = [name for name, kind in self._world.claims.items() if "block" not in kind]
        if claims:
            self.new_pod("memory", claims=(self._world.random.choice(claims),))

    def _change(self) -> None:
        pods = [pod.stored_name for pod in self._world.pods.values() if not pod.static]
        if pods:
            self._world.objects.label_pod(self._world.random.choice(pods), "changed")

    def _grow(self) -> None:
        claims = list(self._world.claims)
        if claims:
            self.grow(self._world.random.choice(claims))

    def grow(self, name: str) -> None:
        """Ask for a little more than it has."""
        with contextlib.suppress(VolumeHostError):
            asked = self._world.objects.claims()[name].spec.resources.requests["storage"]
            size = f"{int(asked.removesuffix('Mi')) + 4}Mi"
            self._world.tell(f"grow {name} to {size}")
            self._world.objects.grow_claim(name, size)

    def _kill_a_driver(self) -> None:
        which = self._world.random.choice(["fake", "driver", "keeper"])
        self._world.tell(f"kill {which}")
        self._world.kill_driver(which)

    # --- commands that are killed -----------------------------------------------------------------------------------

    def _mount_by_command(self) -> None:
        number = next(self._numbers)
        kinds = self._world.random.sample(["scratch", "memory", "host", "inline"], 2)
        pod = Pod(f"p{number}", tuple(Volume(kind, kind) for kind in kinds))
        path = f"{self._world.place.base}/{pod.name}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(pod.manifest(self._world.place.host_data), file)
        self._world.tell(f"volumehost mount {pod.name}")
        self._world.pods[pod.name] = pod
        self._start("mount", pod.name, "mount", "-f", path)

    def _unmount_by_command(self) -> None:
        names = [n for n, pod in self._world.pods.items() if n not in self.staying and not pod.static]
        if names:
            name = self._world.random.choice(names)
            self._world.tell(f"volumehost unmount {name}")
            self._kept.forget(name)
            self._start("unmount", name, "unmount", name)

    def _start(self, kind: str, name: str, *arguments: str) -> None:
        self._commands.append((kind, name, self._world.start_command(*arguments, "--timeout", "20s")))

    def kill_commands(self) -> int:
        """Kill what runs, and find out how far it came: whether a pod came to be wanted. Returns how many."""
        killed = 0
        for kind, name, process in self._commands:
            killed += process.poll() is None
            process.kill()
            process.wait()
            if name not in self._world.pods:  # it ended while the command was about to make it
                self._world.objects.end_pod(name)
            elif kind == "unmount":
                self._world.end(name)  # a wish that was killed is repeated
            elif name not in self._world.objects.pods():
                del self._world.pods[name]
        self._commands.clear()
        return killed
