"""What `consilience theory` tells about a network, as one dictionary."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from consilience.described.networks import NETWORKS
from consilience.described.settings import read_toml, validate
from consilience.errors import InputError, brief, suggestion
from consilience.machine import memory
from consilience.network import Network, Replay, check, read_network, read_turns
from consilience.network.files import SUFFIXES
from consilience.report.tables import table
from consilience.runs.folder import check_beside
from consilience.theory import (
    certain_sample_size,
    finite_information,
    gaussian_information,
    hardest_direction,
    is_reversible,
    lambda_max,
    lemma_1,
    log_ratio_bound,
    mean_log_ratio,
    mean_log_ratio_limit,
    mixing_window,
    rate,
    realised,
    sample_size,
    stationary,
)

LEMMA_AGENTS = 500  # Lemma 1's sum needs dense powers of W
SHOWN_AGENTS = 20
LARGEST = 1e300  # nats; sums of them are still numbers
PER_AGENT = ("v", "mean_log_ratio", "mean_log_ratio_limit", "realised_centrality", "mean_log_ratio_pooled")
NOT_HERE = ("matrix", "rotating-star")  # given as a file; not one network, but its turns are


def network_from(source: str, options: dict[str, Any]) -> Network:
    """A checked network from a file, or a kind with its options."""
    if source.endswith(SUFFIXES):
        if options:
            raise InputError(f"{next(iter(options))}: is for built-in networks, '{source}' is a file")
        network = read_network(source)
    elif source in NETWORKS and source not in NOT_HERE:
        network = validate(NETWORKS[source], options).fixed()
    else:
        known = [name for name in NETWORKS if name not in NOT_HERE]
        raise InputError(
            f"network: unknown '{source}', neither a kind nor a .csv or .toml file; {suggestion(source, known)}"
        )
    check(network)
    return network


def describe(network: Network, rounds: int = 1000) -> dict[str, Any]:
    """v, lambda_max, gap and Lemma 1 of a network that satisfies assumption 1."""
    v = stationary(network)
    second = lambda_max(network, v)
    facts: dict[str, Any] = {
        "network": network.name,
        "agents": network.agents,
        "edges": network.edges,
        "reversible": is_reversible(network),
        "v": v.tolist(),
        "lambda_max": second,
        "gap": 1 - second,
        "lemma_1_bound": 4 * float(np.log(network.agents)) / (1 - second) if second < 1 else None,
    }
    if network.agents <= LEMMA_AGENTS:
        lemma = lemma_1(network, v, 1 - second, rounds)
        holds = False if lemma.sum > lemma.bound else True if lemma.converged else None
        facts |= {
            "lemma_1_sum": lemma.sum,
            "lemma_1_terms": lemma.terms,
            "lemma_1_converged": lemma.converged,
            "lemma_1_holds": holds,
        }
    if network.names:
        facts["names"] = list(network.names)
    return facts


def describe_turns(file: str, model: Path | None = None) -> dict[str, Any]:
    """What the recorded turns of a run made of everybody's evidence; with a model of hypotheses, the rate too."""
    check_beside(Path(file))
    turns = read_turns(file)
    if not turns:
        raise InputError(f"turns: '{file}' has no rounds")
    agents = 1 + max(
        int(part.max(initial=0)) for turn in turns for part in (turn.learners, turn.receivers, turn.senders)
    )
    # Everybody's share in everybody's belief, and in each of those that can still be heard.
    oldest = max(int(turn.ages.max(initial=0)) for turn in turns)
    memory.require(8.0 * agents**2 * (oldest + 5), f"turns: '{file}' names {agents:,} agents")
    schedule = Replay(agents, turns)
    after = realised(schedule, len(turns))
    ages = np.concatenate([turn.ages[turn.receivers != turn.senders] for turn in turns])
    facts: dict[str, Any] = {
        "turns": len(turns),
        "agents": agents,
        "learners_a_turn": sum(len(turn.learners) for turn in turns) / len(turns),
        "messages_a_turn": len(ages) / len(turns),
        "mean_age": float(ages.mean()) if len(ages) else None,
        "oldest_age": int(ages.max(initial=0)),
        "contraction": after.contraction,
        "mixing_window": mixing_window(schedule, len(turns)),
        "spread": after.spread,
        "realised_centrality": after.centrality.tolist(),
    }
    if model is None:
        return facts
    values = read_toml(model)
    if "likelihoods" not in values:
        raise InputError(f"model: '{model}' must have a key 'likelihoods' to tell the rate of recorded turns")
    tables, truth = _hypotheses(agents, values)
    information = finite_information(tables, truth)
    K, hardest = rate(after.centrality, information, truth)
    means = after.mean_log_ratio(information[:, hardest])
    return facts | {"K": K, "hardest": hardest, "mean_log_ratio_pooled": means.tolist()}


def describe_model(
    network: Network, file: Path, facts: dict[str, Any], epsilon: float | None, delta: float, rounds: int
) -> dict[str, Any]:
    """I_j, K and the exact means for a model in a TOML file; for finitely many hypotheses Theorem 1's sizes too.

    The file has either `likelihoods` (agents × hypotheses × outcomes) and `truth` (the number of the true hypothesis),
    or a linear-Gaussian model: `second_moments` (agents × d × d), `noise`, and `offset` θ − θ* (else the hardest one of
    length 1).
    """
    values = read_toml(file)
    if "likelihoods" in values:
        told, against = _finite_model(network, values, facts, epsilon, delta)
    elif "second_moments" in values:
        told, against = _gaussian_model(network, values, facts)
    else:
        raise InputError(f"model: '{file}' must have a key 'likelihoods' or 'second_moments'")
    if not (most := float(np.abs(against).max())) * rounds < LARGEST:
        raise InputError(f"model: {rounds} rounds with {most:.3g} nats each are too large a number")
    return {
        **told,
        "rounds": rounds,
        "mean_log_ratio": mean_log_ratio(network, against, [rounds])[0].tolist(),
        "mean_log_ratio_limit": mean_log_ratio_limit(network, against, rounds).tolist(),
        "mean_log_ratio_pooled": mean_log_ratio(network, against, [rounds], "pooled")[0].tolist(),
        "mean_log_ratio_pooled_limit": mean_log_ratio_limit(network, against, rounds, "pooled").tolist(),
    }


def _finite_model(
    network: Network, values: dict[str, Any], facts: dict[str, Any], epsilon: float | None, delta: float
) -> tuple[dict[str, Any], Any]:
    tables, truth = _hypotheses(network.agents, values)
    information = finite_information(tables, truth)
    K, hardest = rate(np.array(facts["v"]), information, truth)
    C, allowance = log_ratio_bound(tables), K / 2 if epsilon is None else epsilon
    size = partial(sample_size, C, network.agents, tables.shape[1], facts["gap"], allowance, delta)
    told = {
        "truth": truth,
        "information": information.tolist(),
        "K": K,
        "hardest": hardest,
        "C": C,
        "epsilon": allowance,
        "delta": delta,
        "n_paper": size("paper"),
        "n_corrected": size("corrected"),
    }
    if facts.get("lemma_1_converged"):
        told["n_certain"] = certain_sample_size(
            C, network.agents, tables.shape[1], facts["lemma_1_sum"], allowance, delta
        )
    return told, information[:, hardest]


def _hypotheses(agents: int, values: dict[str, Any]) -> tuple[Any, int]:
    tables = _per_agent(agents, values, "likelihoods", "hypotheses × outcomes")
    truth = values.get("truth", 0)
    if isinstance(truth, bool) or not (isinstance(truth, int) and 0 <= truth < tables.shape[1]):
        raise InputError(f"truth: must be the number of a hypothesis, 0 to {tables.shape[1] - 1}, got {brief(truth)}")
    return tables, truth


def _gaussian_model(network: Network, values: dict[str, Any], facts: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    moments = _per_agent(network.agents, values, "second_moments", "d × d")
    v, d = np.array(facts["v"]), moments.shape[1]
    if moments.shape[2] != d or np.abs(moments - moments.transpose(0, 2, 1)).max() > 1e-9 * np.abs(moments).max():
        raise InputError("second_moments: every agent's must be a symmetric matrix")
    if (lowest := float(np.linalg.eigvalsh(moments).min())) < -1e-9 * float(np.abs(moments).max()):
        raise InputError(f"second_moments: must have no negative variance in any direction, got {lowest:g}")
    noise = values.get("noise", 1.0)
    if isinstance(noise, bool) or not (isinstance(noise, int | float) and 0 < noise < np.inf):
        raise InputError(f"noise: must be greater than 0 and finite, got {brief(noise)}")
    try:
        offset = np.array(values["offset"], dtype=np.float64) if "offset" in values else hardest_direction(v, moments)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"offset: must be {d} numbers, got {brief(values['offset'])}") from None
    if offset.shape != (d,) or not np.isfinite(offset).all():
        raise InputError(f"offset: must be {d} finite numbers, got {brief(values['offset'])}")
    information = gaussian_information(moments, float(noise), offset)
    told = {"information": information.tolist(), "K": float(v @ information), "offset": offset.tolist()}
    return told, information


def _per_agent(agents: int, values: dict[str, Any], key: str, rest: str) -> Any:
    """A three-dimensional table with an entry for each agent."""
    try:
        array = np.array(values[key], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{key}: must hold numbers, agents × {rest}, every agent alike") from None
    if array.ndim != 3 or array.shape[0] != agents or not array.size:
        raise InputError(f"{key}: must be {agents} agents × {rest}, got {' × '.join(map(str, array.shape))}")
    if not np.isfinite(array).all():
        place = ", ".join(str(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{key}: must be finite, got {array[~np.isfinite(array)][0]} at [{place}]")
    return array


def as_tables(facts: dict[str, Any]) -> list[Table]:
    """The same for a person: the network, its agents, and its model where there is one."""
    plain = {key: value for key, value in facts.items() if not isinstance(value, list)}
    names = facts.get("names") or range(facts["agents"])
    per_agent = [key for key in PER_AGENT if key in facts]
    rows = [[str(name), *(facts[key][i] for key in per_agent)] for i, name in enumerate(names)]
    left = len(rows) - SHOWN_AGENTS
    title = f"The first {SHOWN_AGENTS} agents; --json gives all" if left > 0 else None
    return [table(["", ""], list(plain.items())), table(["agent", *per_agent], rows[:SHOWN_AGENTS], title)]
