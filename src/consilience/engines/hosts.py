"""Several hosts in one run: how they come together, and what they tell each other beside what agents say.

The first host alone reads and writes the run's folder. Each host loads the data of its own agents.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Int

from consilience.errors import InputError
from consilience.runs.provenance import versions

HEARTBEAT = 30  # seconds without a sign of life after which a host counts as lost
FAREWELL = 600  # seconds that hosts wait for the first one to draw its figures
Said = TypeVar("Said")


class Meeting(NamedTuple):
    """Where hosts meet (HOST:PORT of the first), how many they are, which one this is, and how long it waits (s).

    >>> Meeting("10.0.0.1", 2, 0).check()
    Traceback (most recent call last):
    consilience.errors.InputError: coordinator: must be HOST:PORT, got '10.0.0.1'
    """

    coordinator: str | None = None
    hosts: int | None = None
    host_id: int | None = None
    timeout: int = 60

    def check(self) -> None:
        """Refuse what cannot be a meeting."""
        given = {"--coordinator": self.coordinator, "--hosts": self.hosts, "--host-id": self.host_id}
        if missing := [name for name, value in given.items() if value is None]:
            if len(missing) < len(given):
                raise InputError(f"hosts: {', '.join(given)} go together, {' and '.join(missing)} not given")
            return
        assert self.coordinator is not None
        assert self.hosts is not None
        assert self.host_id is not None
        name, found, port = self.coordinator.rpartition(":")
        if not (found and name and port.isdecimal() and 0 < int(port) < 2**16):
            raise InputError(f"coordinator: must be HOST:PORT, got '{self.coordinator}'")
        if self.hosts < 1:
            raise InputError(f"hosts: must be at least 1, got {self.hosts}")
        if not 0 <= self.host_id < self.hosts:
            raise InputError(f"host-id: must be 0 to {self.hosts - 1}, got {self.host_id}")

    @property
    def launcher(self) -> str | None:
        """What started this process together with others, where no meeting is given."""
        if self.coordinator is not None:
            return None
        slurm = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_LOCALID")
        if all(name in os.environ for name in slurm) and _number("SLURM_NTASKS") > 1:
            return "slurm"
        return "ompi" if "OMPI_MCA_orte_hnp_uri" in os.environ and _number("OMPI_COMM_WORLD_SIZE") > 1 else None

    @property
    def several(self) -> bool:
        """Whether there are other hosts."""
        return self.launcher is not None or (self.hosts or 1) > 1


def join(meeting: Meeting) -> None:
    """Meet the other hosts; from then on JAX sees the devices of all. Call it before JAX is first used."""
    meeting.check()
    if not meeting.several:
        return
    if meeting.coordinator is not None:
        _check_port(meeting.coordinator) if meeting.host_id == 0 else _wait_for(meeting.coordinator, meeting.timeout)
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_enable_preemption_service", False)  # it would swallow SIGTERM
    jax.distributed.initialize(
        meeting.coordinator,
        meeting.hosts,
        meeting.host_id,
        cluster_detection_method=meeting.launcher,
        initialization_timeout=meeting.timeout,
        heartbeat_timeout_seconds=HEARTBEAT,
        shutdown_timeout_seconds=FAREWELL,
    )
    agree("--hosts", {"--hosts": meeting.hosts})
    agree("versions", versions())


def leave() -> None:
    """Part when all are done."""
    if count() > 1:
        import jax

        jax.distributed.shutdown()


def count() -> int:
    """How many hosts there are."""
    import jax

    return int(jax.process_count())


def is_first() -> bool:
    """Whether this is the host that keeps the run's folder."""
    return host_number() == 0


def from_first(f: Callable[[], Said]) -> Said:
    """What f gives on the first host, where alone it is called (anything JSON can say); bad input is bad for all.

    >>> from_first(lambda: {"round": 3})
    {'round': 3}
    """
    if count() == 1:
        return f()
    said: list[Said] = []
    on_all(lambda: said.append(f()) if is_first() else None)
    text = json.dumps(said).encode() if is_first() else b""
    heard: list[Said] = json.loads(_texts(text)[0])
    return heard[0]


def on_all(f: Callable[[], Said]) -> Said:
    """What f gives here; where it refuses its input on any host, all refuse it in the same words.

    >>> on_all(lambda: 3)
    3
    """
    if count() == 1:
        return f()
    refused, result = "", []
    try:
        result.append(f())
    except InputError as error:
        refused = str(error)
    said = [text.decode() for text in _texts(refused.encode())]
    if any(said):
        host = next(number for number, text in enumerate(said) if text)
        leave()
        raise InputError(said[host] if host == 0 or said[host].startswith("hosts: ") else f"host {host}: {said[host]}")
    return result[0]


def agree(what: str, mine: Mapping[str, Any]) -> None:
    """Refuse, on all hosts, to go on with hosts that differ in any of these (anything JSON can say)."""
    if count() == 1:
        return
    first = from_first(lambda: dict(mine))

    def compare() -> None:
        own = json.loads(json.dumps(dict(mine)))
        for name in {**first, **own}:
            if first.get(name) != own.get(name):
                here, there = (_short(values.get(name)) for values in (own, first))
                number = host_number()
                raise InputError(
                    f"hosts: {what} must be the same on all: {name} is {here} on host {number}, {there} on host 0"
                )

    on_all(compare)


def host_number() -> int:
    """Which host this is."""
    import jax

    return int(jax.process_index())


def _short(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _texts(text: bytes) -> list[bytes]:
    """What every host says, on all."""
    length = int(longest(np.array(len(text), np.int64)))
    table = np.zeros((count(), 8 + length), np.uint8)
    table[host_number(), :8] = np.frombuffer(len(text).to_bytes(8, "little"), np.uint8)
    table[host_number(), 8 : 8 + len(text)] = np.frombuffer(text, np.uint8)
    rows = _over_hosts(table, "sum")
    return [row[8 : 8 + int.from_bytes(row[:8].tobytes(), "little")].tobytes() for row in rows]


def same(array: Any) -> np.ndarray:
    """The first host's array, on all."""
    mine = np.asarray(array)
    return _over_hosts(mine if is_first() else np.zeros_like(mine), "sum")


def longest(lengths: Int[np.ndarray, "*arrays"]) -> Int[np.ndarray, "*arrays"]:
    """The largest that any host has, on all."""
    return _over_hosts(lengths, "max")


def anywhere(flag: bool) -> bool:
    """Whether any host says yes; all have to ask."""
    return bool(_over_hosts(np.array(int(flag)), "max"))


def to_first(array: np.ndarray) -> list[np.ndarray]:
    """Every host's array, at the first one; the others get nothing but their own. All must be of one shape."""
    return [array if sender == 0 else _over_hosts(array, sender) for sender in range(count())]


def _over_hosts(array: np.ndarray, how: str | int) -> np.ndarray:
    """The sum or the largest of what hosts have, on all; or what the host of this number has, on the first."""
    if count() == 1:
        return array
    import jax
    from jax import lax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    # One device of each host: hosts may have different numbers of them.
    devices = {device.process_index: device for device in reversed(jax.devices())}
    mesh = Mesh(np.array([devices[host] for host in sorted(devices)]), ("hosts",), axis_types=(AxisType.Auto,))

    def together(x: Any) -> Any:
        if isinstance(how, int):
            return lax.ppermute(x, "hosts", [(how, 0)])
        return lax.psum(x, "hosts") if how == "sum" else lax.pmax(x, "hosts")

    rows = PartitionSpec("hosts")
    mine = jax.device_put(array[None], devices[jax.process_index()])
    whole = jax.make_array_from_single_device_arrays((count(), *mine.shape[1:]), NamedSharding(mesh, rows), [mine])
    program = jax.jit(jax.shard_map(together, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False))
    return np.asarray(program(whole).addressable_data(0)[0])


def _wait_for(address: str, timeout: int) -> None:
    """JAX ends the process when nobody answers; here that is one line."""
    name, _, port = address.rpartition(":")
    until = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((name.strip("[]"), int(port)), timeout=max(until - time.monotonic(), 1)).close()
        except (OSError, UnicodeError) as error:
            if time.monotonic() >= until or isinstance(error, socket.gaierror | UnicodeError):
                why = getattr(error, "strerror", None) or error
                raise InputError(f"coordinator: {address} does not answer ({why}); is host 0 running?") from None
            time.sleep(min(0.5, max(until - time.monotonic(), 0)))
        else:
            return


def _check_port(address: str) -> None:
    port = int(address.rpartition(":")[2])
    with socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET) as test:
        test.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            test.bind(("", port))
        except OSError as error:
            raise InputError(f"coordinator: port {port} cannot be used on this host: {error.strerror}") from None


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
