"""Where the agents of a simulation live: slots on a mesh of devices (cores, GPUs) of one host or many, and who works
when.

Agents are laid out in order, whole agents to hosts and on a host an equal share of the work to every device. Where the
shares do not come out even, an agent is cut: it does the first steps of its round on one device and the rest on the
one before (McNaughton's wrap-around rule). Lay all steps on a line and cut it into equal pieces, one a device; the
agent at a device's left border is its first work, the one at its right border its last. Whenever a device has the work
of two agents or more, the first part of a cut agent is over before its second begins, so one exchange in the middle of
a round is enough. An agent, and its data, is never on two hosts.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int

from consilience.engines import hosts

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
    work: in both halves of a round, the (slot, first step, last step) that a device plays one after another.
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


def place(agents: int, steps: int | None = None, devices: list[Any] | None = None, cut: bool = True) -> Placement:
    """Light agents (no steps to divide) together on one device of each host, heavy ones over all devices.

    Agents are cut where that evens out the work; or, where not all of them learn in every round, dealt out like cards.

    >>> placed = place(9, steps=155)
    >>> sorted(set(placed.numbers.reshape(-1).tolist())) == list(range(9))
    True
    """
    of_host: dict[int, list[Any]] = {}
    for device in devices or jax.devices():
        of_host.setdefault(device.process_index, []).append(device)
    each = min(min(map(len, of_host.values())), -(-agents // len(of_host)))
    if steps is None and devices is None:
        each = 1
    chosen = [device for host in sorted(of_host) for device in of_host[host][:each]]
    mesh = Mesh(np.array(chosen), (AXIS,), axis_types=(AxisType.Auto,))
    if cut:
        return Placement(mesh, *_wrap_around(agents, steps or 1, each, len(of_host)))
    return Placement(mesh, *_dealt_out(agents, len(chosen)))


def _dealt_out(agents: int, devices: int) -> tuple[Any, ...]:
    """Agent a on device a mod D, so that agents with consecutive numbers are spread evenly; turns say who works."""
    slots = -(-agents // devices)
    numbers = np.minimum(np.arange(slots) * devices + np.arange(devices)[:, None], agents - 1).astype(np.int32)
    home = (np.arange(agents) % devices * slots + np.arange(agents) // devices).astype(np.int32)
    return numbers, home, np.zeros((devices, 2, 0, 3), np.int32), ()


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


class _Share(NamedTuple):
    """One device's piece of the line: its agents, what it does of them in both halves, and whether its first is cut."""

    agents: list[int]
    halves: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]  # (place among its agents, first, last)
    cut: bool


def _wrap_around(agents: int, steps: int, each: int, hosts: int = 1) -> tuple[Any, ...]:
    """Slots, homes, work and cut borders; whole agents only where a device would have the work of fewer than two."""
    most = -(-agents // hosts)
    piece = -(-most * steps // each)
    if piece < 2 * steps or not most % each:
        piece = -(-most // each) * steps
    shares = []
    for mine in np.array_split(np.arange(agents), hosts):
        pieces = [(device * piece, (device + 1) * piece) for device in range(each)]
        shares += [_share(mine.tolist() or [agents - 1], len(mine), steps, *piece_) for piece_ in pieces]
    slots = max(len(share.agents) for share in shares)
    # The last agent of a device always has its last slot, where the neighbour's part of it arrives; spare slots before.
    numbers = np.array([s.agents[:-1] + [s.agents[-1]] * (slots - len(s.agents) + 1) for s in shares], np.int32)
    work = np.zeros((len(shares), 2, max(len(half) for s in shares for half in s.halves), 3), np.int32)
    home = np.zeros(agents, np.int32)
    for device, share in enumerate(shares):
        # … unless it is the only one and the neighbour plays its end: then it is handed over from the first slot.
        slot_of = [*range(len(share.agents) - 1), 0 if share.cut and len(share.agents) == 1 else slots - 1]
        for half, listed in enumerate(share.halves):
            for row, (place_, first, last) in enumerate(listed):
                work[device, half, row] = slot_of[place_], first, last
                if last == steps:
                    home[share.agents[place_]] = device * slots + slot_of[place_]
    return numbers, home, work, tuple(device for device, share in enumerate(shares) if share.cut)


def _share(agents: list[int], count: int, steps: int, begin: int, end: int) -> _Share:
    """The work between two points of the line on which the a-th of the agents has the steps a·steps to (a+1)·steps."""
    begin, end = (min(point, count * steps) for point in (begin, end))
    mine = list(range(begin // steps, -(-end // steps)))
    early: list[tuple[int, int, int]] = []
    late: list[tuple[int, int, int]] = []
    time = 0
    for number, agent in enumerate(mine):
        doing = min(end, (agent + 1) * steps) - max(begin, agent * steps)
        first = 0 if agent * steps < begin else steps - doing  # cut by the left border: its first steps; else its last
        middle = first + min(max(steps - time, 0), doing)
        early += [(number, first, middle)] if middle > first else []
        late += [(number, middle, first + doing)] if first + doing > middle else []
        time += doing
    cut = bool(mine) and mine[0] * steps < begin
    return _Share([agents[place_] for place_ in mine] or [agents[-1]], (early, late), cut)
