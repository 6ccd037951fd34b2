"""Bytes that agents send each other by a round: worked out when a run begins, from who hears whom, and kept with it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from consilience.engines.arm import Arm, message_bytes

SENT = "sent"  # where it is kept


def sent_by(arms: Mapping[str, Arm], rounds: int) -> dict[str, Any]:
    """Of every arm that tells it: the bytes of a message, and (rounds, messages in each of them) one after another."""
    return {
        name: {
            "message_bytes": message_bytes(arm),
            "messages": [(len([*same]), count) for count, same in groupby(arm.messages(rounds).tolist())],
        }
        for name, arm in arms.items()
        if arm.messages is not None
    }


def told(kept: Mapping[str, Any], arm: str, number: int) -> dict[str, int | float]:
    """What an arm has sent by the end of a round, in all and a round, where it is known; a run keeps it in its shares.

    >>> told({SENT: {"all": {"message_bytes": 8, "messages": [(1, 4), (9, 6)]}}}, "all", 3)
    {'bytes_sent': 128, 'bytes_a_round': 42.666666666666664}
    """
    known = kept.get(SENT, {}).get(arm)
    if known is None:
        return {}
    total, left = 0, number
    for rounds, messages in known["messages"]:
        total, left = total + min(rounds, left) * messages, left - min(rounds, left)
    total *= known["message_bytes"]
    return {"bytes_sent": total, "bytes_a_round": total / number}
