"""What is told of a run: measured rates against their exact means, as shares of what the data allows, by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from rich.table import Table

from consilience.experiments.changing_rates.description import Config, RuleName
from consilience.experiments.changing_rates.theory import Prediction, predict
from consilience.report.tables import table as made_table
from consilience.runs.record import Record


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """For every network: what the turns say of it, and by every rule the measured rate against the exact one."""
    theory = predict(config)
    networks: dict[str, dict[str, Any]] = {}
    for arm, (network, rule) in config.arms().items():
        if arm in record.arms():  # it may not have been played yet
            told = networks.setdefault(network, _of_network(theory[network]))
            told["rules"][rule] = _of_rule(record, arm, rule, theory[network])
    return {
        "replicates": config.replicates,
        "rounds": min(int(record.rounds(name)[-1]) for name in record.arms()),
        "networks": networks,
    }


def _of_network(theory: Prediction) -> dict[str, Any]:
    return {
        "agents": theory.agents,
        "hypothesis": theory.hardest,
        "K_of_W": theory.K_of_W,
        "K_realised": theory.K,
        "realised_centrality": theory.centrality.tolist(),
        "mixing_window": theory.window,
        "rules": {},
    }


def _of_rule(record: Record, arm: str, rule: RuleName, theory: Prediction) -> dict[str, Any]:
    measured = record.select(arm, "log_ratio")
    exact, allowed = theory.exact[rule][: len(measured)], float(theory.allowed[len(measured) - 1])  # as far as played
    rate = float(measured[-1].mean())
    row = {
        "rate_measured": rate,
        "rate_exact": float(exact[-1].mean()),
        "rate_allowed": allowed,
        "measured_over_allowed": _over(rate, allowed),
        "least_of_any_agent_over_allowed": _over(float(measured[-1].min()), allowed),
        "worst_difference_of_any_agent": _worst(measured[-1], exact[-1]),
    }
    if rule == "paper":
        row["measured_over_realised"] = _over(rate, theory.K)
    if "log_ratio_se" in record.columns:  # with several seeds
        error = record.select(arm, "log_ratio_se")
        off = np.abs(measured - exact) / np.maximum(error, 1e-300)
        row["worst_in_standard_errors"] = float(off[error > 0].max(initial=0))
    return row


def _over(value: float, reference: float) -> float | None:
    return value / reference if reference else None


def _worst(measured: Float[np.ndarray, "agents"], exact: Float[np.ndarray, "agents"]) -> float | None:
    """The largest relative difference, of agents that have heard anything yet."""
    some = exact > 0
    return float(np.abs(measured[some] / exact[some] - 1).max()) if some.any() else None


def table(summary: dict[str, Any]) -> Table:
    """A row for each network and rule; what W and the realised centrality say is about the paper's."""
    columns = ["network", "rule", "N", "K of W", "K realised", "allowed", "measured", "share", "least", "off", "s.e."]
    rows = [
        [
            network,
            rule,
            told["agents"],
            *([told["K_of_W"], told["K_realised"]] if rule == "paper" else [None, None]),
            row["rate_allowed"],
            row["rate_measured"],
            _percent(row["measured_over_allowed"], 1),
            _percent(row["least_of_any_agent_over_allowed"], 1),
            _percent(row["worst_difference_of_any_agent"], 2),
            row.get("worst_in_standard_errors"),
        ]
        for network, told in summary["networks"].items()
        for rule, row in told["rules"].items()
    ]
    title = (
        f"Decay after {summary['rounds']} turns, {summary['replicates']} seeds. K of W: as if nothing changed; "
        "allowed: of one agent with all data that anybody has learnt from; share: measured of that, on average and of "
        "the least agent (an average of N agents' evidence has 1/N); off: an agent's largest distance from its exact "
        "mean"
    )
    return made_table(columns, rows, title)


def _percent(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}%}"
