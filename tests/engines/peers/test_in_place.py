"""States are learnt and pooled in their own memory, so no two of their arrays may share any."""

import jax
import jax.numpy as jnp

from consilience.consensus.tracking import Sums, Tracked
from consilience.engines.peers.player import ArmPlayer


def test_sums_that_begin_anew_share_no_memory_with_the_site():
    site = {"x": jnp.ones(4)}
    rest = dict.fromkeys(("own", "first", "q", "learnt", "floored"), jnp.zeros(()))
    player = ArmPlayer.__new__(ArmPlayer)
    player._double = False
    begun = player.begin_sums(Tracked(site=site, sums=Sums(site, jnp.zeros(())), **rest))
    places = [[x.unsafe_buffer_pointer() for x in jax.tree.leaves(part)] for part in (begun.site, begun.sums)]
    assert not {*places[0]} & {*places[1]}
    assert begun.sums.agents == 1
    assert (jax.tree.leaves(begun.sums)[0] == 1).all()
