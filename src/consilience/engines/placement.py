"""Where the agents of a simulation live: slots on a mesh of devices (cores, GPUs, hosts), and who works when.

Agents are laid out in order, an equal share of the work on every device. Where the shares do not come out even, an
agent is cut: it does the first steps of its round on one device and the rest on the one before (McNaughton's
wrap-around rule). Lay all steps on a line and cut it into equal pieces, one a device; the agent at a device's left
border is its first work, the one at its right border its last. Whenever a device has the work of two agents or more,
the first part of a cut agent is over before its second begins, so one exchange in the middle of a round is enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int

AXIS = "agents"
ALIGNMENT = 64  # bytes
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

    def spread(self, tree: Tree, leading: int = 0) -> Tree:
        """Put arrays with one row a slot, after some leading axes, where the slots are."""
        rows = NamedSharding(self.mesh, PartitionSpec(*(None,) * leading, AXIS))
        placed: Tree = jax.device_put(tree, rows)
        return placed

    def share(self, tree: Tree) -> Tree:
        """Give arrays to all devices. Cores read the same memory: an array is there once, however many they are."""
        whole = NamedSharding(self.mesh, PartitionSpec())
        placed: Tree = jax.tree.map(lambda x: jax.device_put(_aligned(x), whole), tree)
        return placed


def place(agents: int, steps: int | None = None, devices: list[Any] | None = None, cut: bool = True) -> Placement:
    """Light agents (no steps to divide) together on one device, heavy ones over all devices.

    Agents are cut where that evens out the work; or, where not all of them learn in every round, dealt out like cards.

    >>> placed = place(9, steps=155)
    >>> sorted(set(placed.numbers.reshape(-1).tolist())) == list(range(9))
    True
    """
    devices = devices or (jax.devices() if steps is not None else jax.devices()[:1])
    count = min(len(devices), agents)
    mesh = jax.make_mesh((count,), (AXIS,), axis_types=(AxisType.Auto,), devices=devices[:count])
    return Placement(mesh, *(_wrap_around if cut else _dealt_out)(agents, steps or 1, count))


def _dealt_out(agents: int, steps: int, devices: int) -> tuple[Any, ...]:
    """Agent a on device a mod D, so that agents with consecutive numbers are spread evenly; turns say who works."""
    slots = -(-agents // devices)
    numbers = np.minimum(np.arange(slots) * devices + np.arange(devices)[:, None], agents - 1).astype(np.int32)
    home = (np.arange(agents) % devices * slots + np.arange(agents) // devices).astype(np.int32)
    return numbers, home, np.zeros((devices, 2, 0, 3), np.int32), ()


def _aligned(x: Any) -> Any:
    """A copy of an array at an address from which JAX's CPU devices take it without another copy."""
    if not isinstance(x, np.ndarray):
        return x
    room = np.empty(x.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


class _Share(NamedTuple):
    """One device's piece of the line: its agents, what it does of them in both halves, and whether its first is cut."""

    agents: list[int]
    halves: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]  # (place among its agents, first, last)
    cut: bool


def _wrap_around(agents: int, steps: int, devices: int) -> tuple[Any, ...]:
    """Slots, homes, work and cut borders; whole agents only where a device would have the work of fewer than two."""
    piece = -(-agents * steps // devices)
    if piece < 2 * steps or not agents % devices:
        piece = -(-agents // devices) * steps
    shares = [_share(agents, steps, device * piece, (device + 1) * piece) for device in range(devices)]
    slots = max(len(share.agents) for share in shares)
    # The last agent of a device always has its last slot, where the neighbour's part of it arrives; spare slots before.
    numbers = np.array([s.agents[:-1] + [s.agents[-1]] * (slots - len(s.agents) + 1) for s in shares], np.int32)
    work = np.zeros((devices, 2, max(len(half) for s in shares for half in s.halves), 3), np.int32)
    home = np.zeros(agents, np.int32)
    for device, share in enumerate(shares):
        slot_of = [*range(len(share.agents) - 1), slots - 1]
        for half, listed in enumerate(share.halves):
            for row, (place_, first, last) in enumerate(listed):
                work[device, half, row] = slot_of[place_], first, last
                if last == steps:
                    home[share.agents[place_]] = device * slots + slot_of[place_]
    return numbers, home, work, tuple(device for device, share in enumerate(shares) if share.cut)


def _share(agents: int, steps: int, begin: int, end: int) -> _Share:
    """The work between two points of the line on which agent a has the steps from a·steps to (a+1)·steps."""
    begin, end = (min(point, agents * steps) for point in (begin, end))
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
    return _Share(mine or [agents - 1], (early, late), bool(mine) and mine[0] * steps < begin)
