"""Rules by name: the pairs of learner and consensus that people ask for, with constants that do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consilience.errors import InputError, suggestion

# Means follow an agent's own data, and its curvature says how much they count among all. A network's weights are never
# as independent as the family has them; sharper beliefs than Bayes' rule gives (a low temperature) make up for it.
SITED = {"kind": "natural", "pull": 0.0, "prior_sd": 0.2, "temperature": 0.01}
# Where everybody's newest evidence is at hand, agents need not drift apart between rounds.
CORRECTED = {**SITED, "temperature": 0.02, "correction": 1.0, "curvature_decay": 0.99998}
PULLED = {"kind": "natural", "pull": 0.02, "prior_sd": 0.05, "temperature": 1.0}
RULES: dict[str, tuple[str, dict[str, Any] | None, dict[str, Any]]] = {
    "paper": ("variational inference, beliefs pooled by trust", {"kind": "variational"}, {"kind": "pooling"}),
    "natural": ("natural-gradient inference, beliefs pooled by trust", PULLED, {"kind": "pooling"}),
    "sites": ("natural-gradient inference, everybody's data counted once", SITED, {"kind": "sites"}),
    "sites-corrected": (
        "sites, going where all data together leads; news is passed on twice a round",
        CORRECTED,
        {"kind": "sites", "passes": 2},
    ),
    "tracking": ("sites, where only sums are seen", SITED, {"kind": "tracking"}),
    "laplace": ("full-covariance regression, equal to the pooled analysis", {"kind": "laplace"}, {"kind": "sites"}),
    "alone": ("nobody hears anybody", None, {"kind": "alone"}),
    "central": ("one agent has all data", None, {"kind": "central"}),
    "fedavg": ("federated averaging of point weights by shares", {"kind": "gradient"}, {"kind": "fedavg"}),
    "fedprox": ("the same, held near what was averaged", {"kind": "gradient", "proximal": 0.01}, {"kind": "fedavg"}),
    "gossip": ("point weights averaged by trust (D-PSGD)", {"kind": "gradient"}, {"kind": "pooling"}),
    "gradient-tracking": (
        "point weights and directions averaged over links",
        {"kind": "gradient", "momentum": 0.0},
        {"kind": "gradient-tracking"},
    ),
}
SHARED = ("epochs", "batch", "evidence", "steps")  # how much data a round takes is the experiment's, not the rule's


def ruled(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A description by another rule: its learner and its consensus; how much data a round takes stays as it was.

    Of a learner of the same kind the other constants stay, too.

    >>> ruled({"learner": {"epochs": 3, "sd_rate": 10.0}}, "gossip")["learner"]
    {'epochs': 3, 'kind': 'gradient'}
    """
    if name not in RULES:
        raise InputError(f"rule: unknown '{name}'; {suggestion(name, RULES)}")
    if "learner" not in values:
        raise InputError(f"rule: '{values.get('experiment')}' has no learner to choose")
    _, learner, consensus = RULES[name]
    own = dict(values["learner"])
    kind = own.get("kind", "variational")
    if learner is None or learner["kind"] == kind:
        kept = own
    else:
        kept = {} if learner["kind"] == "laplace" else {each: own[each] for each in SHARED if each in own}
    return {**values, "learner": {**kept, **(learner or {})}, "consensus": dict(consensus)}
