"""How an agent learns from its own data in a round: how much of it, in which steps, and what is done with them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from consilience.described.fields import Described
from consilience.learners import Options


class Drawing(Described):
    """How much data a round takes."""

    epochs: int = Field(5, ge=1, description="E: passes over the local data a round")
    batch: int = Field(50, ge=1, description="B: examples a step")
    evidence: Literal["own", "drawn", "used"] = Field(
        "own", description="n in KL/n: all own examples, those drawn in a round, or those used in an epoch"
    )
    # The paper's rule: the smallest share decides how many steps everybody makes, of B examples each.
    steps: Literal["own", "same"] = Field(
        "same", description="own: everybody goes through its own data E times; same: as many steps for everybody"
    )


class LearnerConfig(Options, Drawing):
    """The local update: how much data a round takes, and what `variational` does with it."""
