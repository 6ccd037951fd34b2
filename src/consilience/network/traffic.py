"""Traffic: how many messages agents send in every round. It follows from the turns alone, whatever is in a message."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from consilience.network.following import Following
from consilience.network.network import Network
from consilience.network.schedule import Schedule

A_PARTICIPANT = 2  # messages: the server's to it, and its own back


def over_links(hears: Network | Schedule, rounds: int) -> Int[np.ndarray, "rounds"]:
    """One message for every publication of another agent that somebody hears for the first time.

    What is lost is not counted, nor what is held and pooled again. Of schedules that are made of others, what they
    send: `Tables` every version that is news, `Flows` its running sums over every link that carries any.

    >>> from consilience.network import ring
    >>> over_links(ring(5), rounds=3).tolist()
    [10, 10, 10]
    """
    if isinstance(hears, Following):
        return hears.messages(rounds)
    if isinstance(hears, Network):
        return np.full(rounds, hears.edges - np.count_nonzero(hears.W.diagonal()))
    said = np.zeros(hears.agents, np.int64)  # how often everybody has published
    links, heard = np.zeros(0, np.int64), np.zeros(0, np.int64)  # and up to which publication it was heard over a link
    sent = np.zeros(rounds, np.int64)
    for number in range(rounds):
        turn = hears.turn(number + 1)
        said[turn.learners] += 1
        others = turn.receivers != turn.senders
        link = turn.receivers[others].astype(np.int64) * hears.agents + turn.senders[others]
        if len(new := np.setdiff1d(link, links)):
            place = np.searchsorted(links, new)
            links, heard = np.insert(links, place, new), np.insert(heard, place, 0)
        place, now = np.searchsorted(links, link), said[turn.senders[others]] - turn.ages[others]
        sent[number] = (now > heard[place]).sum()
        heard[place] = np.maximum(heard[place], now)
    return sent


def through_server(
    participants: Schedule | None, able: Int[np.ndarray, "able"], hub: int | None, rounds: int
) -> Int[np.ndarray, "rounds"]:
    """Two messages, up and down, for every participant of a round: those who learn, or else all that are able to.

    The server is nobody, or the agent at the hub of a star, to which its own say costs nothing.

    >>> through_server(None, np.arange(9), None, 2).tolist(), through_server(None, np.arange(9), 0, 2).tolist()
    ([18, 18], [16, 16])
    """

    def others(chosen: Int[np.ndarray, "chosen"]) -> int:
        return int((chosen != (-1 if hub is None else hub)).sum())

    if participants is None:
        return np.full(rounds, A_PARTICIPANT * others(able))
    turns = (participants.turn(number) for number in range(1, rounds + 1))
    return A_PARTICIPANT * np.array([others(turn.learners) for turn in turns], np.int64)


def hub_of(hears: Network | Schedule) -> int | None:
    """The agent in the middle of a star, with whom all links are; there is none in other networks, or between two.

    >>> from consilience.network import path, ring, star
    >>> hub_of(star(4)), hub_of(path(3)), hub_of(ring(4)), hub_of(path(2))
    (0, 1, None, None)
    """
    if not isinstance(hears, Network) or hears.agents < 3:
        return None
    receivers, senders = hears.W.nonzero()
    links = np.stack([receivers, senders])[:, receivers != senders]
    middle = [int(agent) for agent in np.unique(links[:, :1]) if (links == agent).any(axis=0).all()]
    return middle[0] if len(middle) == 1 else None
