"""A rule is a learner and a consensus: the agent they make, what it hears, and where its beliefs are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, Int

from consilience.agent import Agent, Learner, adopting
from consilience.beliefs import Gaussian, MeanField, Point
from consilience.consensus import pooling, sites, tracking
from consilience.consensus.gradient_tracking import gradient_tracking
from consilience.data import Partition
from consilience.engines.arm import Progress
from consilience.errors import InputError
from consilience.learners import variational_learner
from consilience.learners.gradient import gradient_learner
from consilience.learners.laplace import laplace_learner
from consilience.learners.natural import natural_learner
from consilience.learners.packing import Packing, packing_of
from consilience.models import Likelihood, Model
from consilience.models.likelihoods import Gaussian as GaussianLikelihood
from consilience.network import Flows, Network, Participating, Schedule, Tables, Unheard
from consilience.network.weights import metropolis
from consilience.task.consensus import ConsensusConfig, FedAvg, GradientTracking, Sites, Tracking
from consilience.task.learner import AnyLearner, Gradient, Laplace, Natural

Hears = Network | Schedule
FAMILIES = {"variational": MeanField, "natural": MeanField, "laplace": Gaussian, "gradient": Point}


class Rule(NamedTuple):
    """How a task is learnt: an agent, and what it hears of who hears whom, in so many rounds.

    family: of beliefs. pooled_at, own_at: the places of q_i and b_i in an agent's `Progress`, by their fields' names.
    Where only evidence is sent, what an agent believes is q_i and nothing else.
    """

    agent: Agent
    hears: Callable[[Hears, int], Hears]
    family: type
    pooled_at: tuple[str, ...]
    own_at: tuple[str, ...]

    def pooled(self, progress: Progress) -> Any:
        """What an agent believes after it has heard the others."""
        return reduce(getattr, self.pooled_at, progress)

    def own(self, progress: Progress) -> Any:
        """What it believed before that, having learnt from its own data."""
        return reduce(getattr, self.own_at, progress)


def rule_of(
    learner: AnyLearner,
    consensus: ConsensusConfig,
    model: Model,
    likelihood: Likelihood,
    sizes: Int[np.ndarray, "agents"],
    idle: bool = False,
) -> Rule:
    """The rule that a learner and a consensus make, for agents with so much data each; `idle`: some may have none."""
    check_rule(learner, consensus)
    packing = packing_of(jax.eval_shape(model.init, jax.random.key(0)))
    local = learner_of(learner, consensus, model, packing, likelihood)
    local = adopting(local) if idle else local
    family = FAMILIES[learner.kind]
    places = places_of(consensus)
    if isinstance(consensus, Sites):
        return Rule(sites(local, consensus.damping), partial(Tables, passes=consensus.passes), family, *places)
    if isinstance(consensus, Tracking):
        return Rule(tracking(local, len(sizes), consensus.damping), Flows, family, *places)
    if isinstance(consensus, GradientTracking):
        assert isinstance(learner, Gradient)
        return Rule(gradient_tracking(local, packing, learner), _metropolis, family, *places)
    return Rule(pooling(local), _weighed(consensus, sizes), family, *places)


def places_of(consensus: ConsensusConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where an agent's `Progress` has what it pooled, and what it believed before that."""
    if isinstance(consensus, Sites | Tracking):
        return ("state", "q"), ("state", "q")
    if isinstance(consensus, GradientTracking):
        return ("state", "own", "prior"), ("public", "weights")
    return ("state", "prior"), ("public",)


def check_rule(learner: AnyLearner, consensus: ConsensusConfig) -> None:
    """Refuse a learner and a consensus that do not go together."""
    if isinstance(consensus, Sites | Tracking) and isinstance(learner, Gradient):
        raise InputError(
            f"consensus: {consensus.kind} sums up evidence, and learner 'gradient' has points that say nothing of it; "
            "with points go pooling, fedavg and gradient-tracking"
        )
    if isinstance(learner, Natural) and learner.correction:
        check_correction(learner, consensus)
    if isinstance(learner, Laplace) and consensus.kind in ("alone", "central", "fedavg"):
        raise InputError(
            f"consensus: with {consensus.kind} the data of learner 'laplace' would count again in every round; "
            "use sites (with alone=true, what each finds alone is beside it)"
        )
    if isinstance(consensus, GradientTracking) and not (isinstance(learner, Gradient) and learner.optimizer == "sgd"):
        raise InputError("consensus: gradient-tracking needs learner 'gradient' with optimizer 'sgd'")


def check_correction(learner: Natural, consensus: ConsensusConfig) -> None:
    """Refuse a correction where there is nothing to correct by, or nothing to be corrected."""
    if not isinstance(consensus, Sites | Tracking):
        raise InputError(
            f"learner.correction: is by what others' evidence says, and consensus '{consensus.kind}' does not keep it "
            "apart from the own; use sites or tracking, or 0"
        )
    if learner.mean == "newton":
        raise InputError("learner.correction: means by 'newton' follow others' evidence as it is; use 'sgd', or 0")


def learner_of(
    learner: AnyLearner, consensus: ConsensusConfig, model: Model, packing: Packing, likelihood: Likelihood
) -> Learner:
    """A described learner, for this model, as this consensus needs it."""
    density = likelihood.log_density
    if isinstance(learner, Natural):
        return natural_learner(model, packing, learner, density, summed=isinstance(consensus, Sites | Tracking))
    if isinstance(learner, Gradient):
        shifted = isinstance(consensus, GradientTracking)
        return gradient_learner(model, packing, learner, density, shifted)
    if isinstance(learner, Laplace):

        def apply(point: Any, inputs: Any) -> Any:
            return model.apply(packing.unpack(packing.split(point)), inputs)

        # Of a likelihood that somebody has given nobody knows one.
        above = likelihood.above if isinstance(likelihood, GaussianLikelihood) else None
        return laplace_learner(apply, packing.size, learner.prior_sd, density, likelihood.concave, above)
    return variational_learner(model, packing, learner, density)


def check_linear(model: Model, shape: tuple[int, ...]) -> None:
    """Refuse a model whose outputs are not linear in its parameters: Laplace's approximation is for regressions."""
    packing = packing_of(jax.eval_shape(model.init, jax.random.key(0)))
    one, other, inputs = (
        jax.random.normal(jax.random.key(k), s) for k, s in enumerate([(packing.size,)] * 2 + [(3, *shape)])
    )

    def outputs(point: Any) -> Any:
        made = model.apply(packing.unpack(packing.split(point)), inputs)
        return jnp.concatenate([jnp.asarray(part).reshape(-1) for part in jax.tree.leaves(made)])

    halfway, mean = outputs((one + other) / 2), (outputs(one) + outputs(other)) / 2
    if not np.allclose(halfway, mean, rtol=1e-3, atol=1e-3 * float(jnp.abs(mean).max())):
        raise InputError(
            "learner: 'laplace' is for models without hidden layers, whose outputs are linear in their parameters; "
            "use natural or variational"
        )


def draws(belief: Any, samples: int) -> int:
    """How many draws of a belief predictions are made from: one of a point is enough."""
    return 1 if isinstance(belief, Point) else samples


def doubt(belief: Any, state: Any) -> dict[str, Float[Array, ""]]:
    """What is recorded of how sure an agent is of its weights, and how much had to be kept from losing precision."""
    told = {}
    if isinstance(belief, MeanField):
        told["mean_sd"] = (1 / jnp.sqrt(belief.precision)).mean()
    elif isinstance(belief, Gaussian):
        told["mean_sd"] = jnp.sqrt(jnp.diagonal(belief.moments()[1])).mean()
    return told | ({"floored": state.floored} if hasattr(state, "floored") else {})


def held_by_first(partition: Partition) -> Partition:
    """All data in the hands of agent 0."""
    return Partition(np.minimum(partition.owner, 0), partition.agents)


def nobody_hears(hears: Hears) -> bool:
    """Whether agents are alone."""
    if not isinstance(hears, Network):
        return isinstance(hears, Unheard)
    return hears.agents > 1 and hears.edges == int(np.count_nonzero(hears.W.diagonal()))


def _weighed(consensus: ConsensusConfig, sizes: Int[np.ndarray, "agents"]) -> Callable[[Hears, int], Hears]:
    """Whose beliefs are pooled with what weight, by the network or otherwise."""
    agents = len(sizes)

    def weighed(hears: Hears, rounds: int) -> Hears:
        if consensus.kind == "alone":
            return Network(sp.eye_array(agents), "alone") if isinstance(hears, Network) else Unheard(hears)
        if consensus.kind == "central":
            return Network(sp.csr_array(np.eye(agents)[np.zeros(agents, int)]), "central")
        if isinstance(consensus, FedAvg) and not isinstance(hears, Network):
            raise InputError(
                "consensus: fedavg goes through a server that hears everybody in every round; it needs a network that "
                "stays the same"
            )
        if isinstance(consensus, FedAvg) and consensus.fraction < 1:
            return Participating(sizes, consensus.fraction)
        if isinstance(consensus, FedAvg):
            return Network(sp.csr_array(np.tile(sizes / sizes.sum(), (agents, 1))), "averaged by shares")
        return hears

    return weighed


def _metropolis(hears: Hears, rounds: int) -> Network:
    if not isinstance(hears, Network):
        raise InputError("consensus: gradient-tracking needs a network that stays the same")
    if ((hears.W > 0) != (hears.W > 0).T).nnz:
        raise InputError("consensus: gradient-tracking needs links that go both ways, some agent is not heard back")
    return Network(metropolis(hears.W), f"{hears.name}, Metropolis weights")
