"""A few hundred spoilt messages of every kind; `make soak` plays a hundred thousand."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_cases import BOUNDS, HARMLESS, LARGE, SMALL, SPOILT, Receiver, play

from consilience.engines.peers.wire import Refused, decoded, frame, parsed


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_nothing_is_taken_that_was_not_sent(spoil):
    reasons = [reason for seed in range(30) for reason in play(spoil, SMALL, np.random.default_rng(seed))]
    reasons += [reason for seed in range(2) for reason in play(spoil, LARGE, np.random.default_rng(seed))]
    assert spoil in HARMLESS or reasons


@given(st.binary(max_size=500))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_frame_or_refused(content):
    with suppress(Refused):
        kind, header, payload = parsed(content)
        assert frame(kind, header, payload) == content


@given(st.binary(min_size=len(SMALL.bodies[0]), max_size=len(SMALL.bodies[0])))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_a_body_or_refused(content):
    begin = len(SMALL.schema.header)
    for body in (content, SMALL.schema.header + content[begin:]):
        try:
            read = decoded(body, SMALL.schema, BOUNDS)
        except Refused:
            continue
        assert all(np.isfinite(array).all() for array in read.values())
        assert (read[".precision"] >= BOUNDS.least).all()


@given(st.lists(st.integers(0, len(LARGE.frames) * 2 - 1), max_size=12))
@settings(max_examples=40, deadline=None)
def test_frames_in_any_order_give_messages_that_were_sent_or_nothing(order):
    receiver, pieces = Receiver(LARGE.expected), [content for frames in LARGE.frames for content in frames]
    for place in order:
        with suppress(Refused):
            receiver.receive(pieces[place])
    rounds = [said.round for said, _ in receiver.taken]
    assert rounds == sorted(set(rounds))
    assert all(body == LARGE.bodies[said.round] for said, body in receiver.taken)
