"""Where the agents of a simulation live: slots on a mesh of devices (cores, GPUs) of one host or many, and who works
when.

Agents are laid out in order, whole agents to hosts and on a host an equal share of the work to every device. Where the
shares do not come out even, an agent is cut: it does the first part of its round on one device and the rest on the one
before, with one exchange in the middle of a round (see `cutting`). An agent, and its data, is never on two hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int

from consilience.engines import hosts
from consilience.engines.simulate import cutting

AXIS = "agents"
ALIGNMENT = 64  # bytes
# Of a round, so that where agents are cut does not depend on how many steps they make, which may differ between
# repetitions: what a seed gives would round by its company.
PARTS = 5040
Tree = TypeVar("Tree")


class Placement(NamedTuple):
    """Which slot of which device holds which agent, and the work of a round.

    numbers: the agent in every slot. A cut agent has a slot on both devices; spare slots repeat an agent.
    home: the slot, counted over all devices, in which an agent ends a round.
    work: in both halves of a round, the (slot, first part, last part) that a device plays one after another.
    left: the devices whose first slot holds an agent that ends the round on the device before.
    """

    mesh: Mesh
    numbers: Int[np.ndarray, "devices slots"]
    home: Int[np.ndarray, "agents"]
    work: Int[np.ndarray, "devices 2 pieces 3"]
    left: tuple[int, ...]

    def here(self) -> Int[np.ndarray, "agents"]:
        """The agents that are at home on this host."""
        slots = self.numbers.shape[1]
        devices = self.mesh.devices.reshape(-1)[self.home // slots]
        return np.flatnonzero([device.process_index == jax.process_index() for device in devices])

    def spread(self, tree: Tree, leading: int = 0) -> Tree:
        """Put arrays with one row a slot, after some leading axes, where the slots are."""
        rows = NamedSharding(self.mesh, PartitionSpec(*(None,) * leading, AXIS))

        def put(x: Any) -> Any:
            whole = np.asarray(x, jax.dtypes.canonicalize_dtype(np.asarray(x).dtype))
            return jax.make_array_from_callback(whole.shape, rows, lambda part: whole[part])

        placed: Tree = jax.tree.map(put, tree)
        return placed

    def gather(self, x: Any) -> np.ndarray:
        """The opposite, with leading 1: a NumPy array of all slots, at the first host."""
        # Piece by piece: asked for its value as a whole, an array would keep that too from then on.
        mine = sorted(x.addressable_shards, key=lambda shard: shard.index[1].start or 0)
        return np.concatenate(hosts.to_first(np.concatenate([shard.data for shard in mine], axis=1)), axis=1)

    def give(self, tree: Any) -> Any:
        """What this host has, to each of its devices: arrays with a row a device.

        Cores read the same memory: on a host an array is there once, however many they are. Where hosts have more and
        less, arrays are filled up with zeros to the longest.
        """
        leaves, structure = jax.tree.flatten(tree)
        lengths = np.array([x.shape[0] if np.ndim(x) else 0 for x in leaves], np.int64)
        lengths = hosts.longest(lengths)
        rows = NamedSharding(self.mesh, PartitionSpec(AXIS))
        mine = [device for device in self.mesh.devices.reshape(-1) if device.process_index == jax.process_index()]

        def put(x: Any, length: int) -> Any:
            own = _aligned(np.asarray(x), length)[None]
            blocks = [jax.device_put(own, device) for device in mine]
            return jax.make_array_from_single_device_arrays((self.mesh.size, *own.shape[1:]), rows, blocks)

        return jax.tree.unflatten(structure, [put(x, int(length)) for x, length in zip(leaves, lengths, strict=True)])


def place(
    agents: int,
    steps: int | None = None,
    devices: list[Any] | None = None,
    cut: bool = True,
    work: Sequence[float | int] | None = None,
) -> Placement:
    """Light agents (no steps to divide) together on one device of each host, heavy ones over all devices.

    Agents are cut where that evens out their work; or, where not all of them learn in every round, dealt out whole.
    `work` is how much each has to do in a round, relative to the others; that of light agents does not matter.

    >>> placed = place(9, steps=155)
    >>> sorted(set(placed.numbers.reshape(-1).tolist())) == list(range(9))
    True
    """
    of_host: dict[int, list[Any]] = {}
    for device in devices or available():
        of_host.setdefault(device.process_index, []).append(device)
    its = cutting.relative(None if steps is None else work, agents)
    most = max(map(len, cutting.to_hosts(its, len(of_host)))) if cut else -(-agents // len(of_host))
    each = min(min(map(len, of_host.values())), most)
    if steps is None and devices is None:
        each = 1
    chosen = [device for host in sorted(of_host) for device in of_host[host][:each]]
    mesh = Mesh(np.array(chosen), (AXIS,), axis_types=(AxisType.Auto,))
    if cut:
        return Placement(mesh, *cutting.wrap_around(its, steps or 1, each, len(of_host)))
    return Placement(mesh, *cutting.dealt_out(its, len(chosen)))


def available() -> list[Any]:
    """The devices that there are: the cores of this host, or those of all hosts that have met."""
    return list(jax.devices())


def _aligned(x: np.ndarray, length: int) -> np.ndarray:
    """A copy of this length at an address from which JAX's CPU devices take it without another copy."""
    shape = (length, *x.shape[1:]) if x.ndim else ()
    room = np.empty(int(np.prod(shape)) * x.itemsize + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : len(room) - ALIGNMENT + start].view(x.dtype).reshape(shape)
    if x.ndim:
        copy[: len(x)], copy[len(x) :] = x, 0
    else:
        copy[...] = x
    return copy
