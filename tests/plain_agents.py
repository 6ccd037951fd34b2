"""Agents of four functions, played turn by turn with mailboxes: no program, no plan, no devices."""

import jax
import numpy as np

from consilience.agent import Inbox

KEY = jax.random.key(0)


def compiled(agent):
    """The same agent, its functions compiled: to be played several times."""
    return agent._make(jax.jit(f) for f in agent)


def play(agent, given, turns, batch):
    """Everybody's state after these turns; batch(number, agent) is its data of a round."""
    init, learn, publish, pool = agent
    states = [init(each) for each in given]
    structure = jax.tree.structure(publish(states[0]))

    def said(i):
        return [np.asarray(part) for part in jax.tree.leaves(publish(states[i]))]

    mail = [[said(i)] for i in range(len(states))]
    for number, turn in enumerate(turns, 1):
        for i in turn.learners.tolist():
            states[i], _ = learn(KEY, states[i], batch(number, i))
            mail[i].append(said(i))
        heard = {}
        for i, j, age, weight in zip(turn.receivers.tolist(), turn.senders, turn.ages, turn.weights, strict=True):
            message = mail[j][max(len(mail[j]) - 1 - age, 0)]
            before = heard.get(i, [0.0] * len(message))
            heard[i] = [total + weight * part for total, part in zip(before, message, strict=True)]
        for i, parts in heard.items():
            states[i] = pool(states[i], Inbox(jax.tree.unflatten(structure, parts)))
    return states
