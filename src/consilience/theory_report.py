"""What `consilience theory` tells about a network, as one dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from consilience.config import NETWORKS, read_toml, validate
from consilience.errors import InputError, suggestion
from consilience.network import Network, check, read_network
from consilience.network.files import SUFFIXES
from consilience.tables import table
from consilience.theory import (
    finite_information,
    is_reversible,
    lambda_max,
    lemma_1,
    log_ratio_bound,
    mean_log_ratio,
    mean_log_ratio_limit,
    rate,
    sample_size,
    stationary,
)

LEMMA_AGENTS = 500  # Lemma 1's sum needs dense powers of W
SHOWN_AGENTS = 20


def network_from(source: str, options: dict[str, Any]) -> Network:
    """A checked network from a file, or a kind with its options."""
    if source.endswith(SUFFIXES):
        if options:
            raise InputError(f"{next(iter(options))}: is for built-in networks, '{source}' is a file")
        network = read_network(source)
    elif source in NETWORKS and source != "matrix":
        network = validate(NETWORKS[source], options).build()
    else:
        known = [name for name in NETWORKS if name != "matrix"]
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
        facts |= {"lemma_1_sum": lemma.sum, "lemma_1_terms": lemma.terms, "lemma_1_holds": lemma.sum <= lemma.bound}
    if network.names:
        facts["names"] = list(network.names)
    return facts


def describe_model(
    network: Network, file: Path, facts: dict[str, Any], epsilon: float | None, delta: float, rounds: int
) -> dict[str, Any]:
    """I_j, K, Theorem 1's sample sizes and the exact means, for likelihood tables in a TOML file."""
    values = read_toml(file)
    try:
        tables = np.array(values["likelihoods"], dtype=np.float64)
        truth = int(values.get("truth", 0))
    except KeyError:
        raise InputError(f"likelihoods: '{file}' must have a key 'likelihoods'") from None
    except (TypeError, ValueError):
        raise InputError(f"likelihoods: '{file}' must hold numbers, agents × hypotheses × outcomes") from None
    if tables.ndim != 3 or tables.shape[0] != network.agents:
        shape = " × ".join(map(str, tables.shape))
        raise InputError(f"likelihoods: must be {network.agents} agents × hypotheses × outcomes, got {shape}")
    if not 0 <= truth < tables.shape[1]:
        raise InputError(f"truth: must be the number of a hypothesis, 0 to {tables.shape[1] - 1}, got {truth}")
    v = np.array(facts["v"])
    information = finite_information(tables, truth)
    K, hardest = rate(v, information, truth)
    C, allowance = log_ratio_bound(tables), K / 2 if epsilon is None else epsilon
    against = information[:, hardest]
    return {
        "truth": truth,
        "information": information.tolist(),
        "K": K,
        "hardest": hardest,
        "C": C,
        "epsilon": allowance,
        "delta": delta,
        "n_paper": sample_size(C, network.agents, tables.shape[1], facts["gap"], allowance, delta, "paper"),
        "n_corrected": sample_size(C, network.agents, tables.shape[1], facts["gap"], allowance, delta, "corrected"),
        "rounds": rounds,
        "mean_log_ratio": mean_log_ratio(network, against, [rounds])[0].tolist(),
        "mean_log_ratio_limit": mean_log_ratio_limit(network, against, rounds).tolist(),
        "mean_log_ratio_pooled": mean_log_ratio(network, against, [rounds], "pooled")[0].tolist(),
        "mean_log_ratio_pooled_limit": mean_log_ratio_limit(network, against, rounds, "pooled").tolist(),
    }


def as_tables(facts: dict[str, Any]) -> list[Table]:
    """The same for a person: the network, its agents, and its model where there is one."""
    plain = {key: value for key, value in facts.items() if not isinstance(value, list)}
    names = facts.get("names") or range(facts["agents"])
    per_agent = [key for key in ("v", "mean_log_ratio", "mean_log_ratio_limit") if key in facts]
    rows = [[str(name), *(facts[key][i] for key in per_agent)] for i, name in enumerate(names)]
    left = len(rows) - SHOWN_AGENTS
    title = f"The first {SHOWN_AGENTS} agents; --json gives all" if left > 0 else None
    return [table(["", ""], list(plain.items())), table(["agent", *per_agent], rows[:SHOWN_AGENTS], title)]
