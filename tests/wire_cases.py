"""What a neighbour might send: honest messages, and all the ways in which they can be spoilt, by (seed, number)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

import numpy as np

from consilience.engines.peers.wire import (
    LONGEST_FRAME,
    About,
    Assembler,
    Bounds,
    Expected,
    Kind,
    Refused,
    Schema,
    about,
    chunks,
    decoded,
    encoded,
    frame,
    parsed,
    sealed,
)

STUDY, NEIGHBOUR, STRANGER = ("study", "neighbour", "stranger")
BOUNDS = Bounds(1e-3, 1e8)


def name(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


def belief(size: int, seed: int = 0, dtype: str = "float32") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sd, mean = np.exp(rng.uniform(np.log(0.001), np.log(0.2), size)), rng.uniform(-2, 2, size)
    return {".precision": (sd**-2).astype(dtype), ".precision_mean": (mean * sd**-2).astype(dtype)}


class Receiver:
    """One end of a link that takes beliefs, as a peer has it, with nothing but the wire in it."""

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.taken: list[tuple[About, bytes]] = []
        self.assembler = Assembler(lambda heard: self._schema(heard).bytes)

    def _schema(self, heard: About) -> Schema:
        self.expected.check(heard)
        return self.expected.schema

    def receive(self, content: bytes) -> None:
        kind, header, payload = parsed(content)
        if kind is not Kind.BELIEF:
            return
        whole = self.assembler.add(header, payload)
        if whole is None:
            return
        heard, body = whole
        self.expected.check(heard)  # again: another may have come between its beginning and its end
        decoded(body, self.expected.schema, BOUNDS)
        self.expected = self.expected._replace(newest=(heard.incarnation, heard.round))
        self.taken.append((heard, bytes(body)))


class Honest:
    """A neighbour's messages of three rounds, of a few numbers or of more than a frame holds."""

    def __init__(self, size: int) -> None:
        beliefs = [belief(size, seed) for seed in range(3)]
        self.schema = Schema.of(beliefs[0])
        self.expected = Expected(name(STUDY), 3, name(NEIGHBOUR), self.schema)
        self.bodies = [encoded(one, self.schema) for one in beliefs]
        self.abouts = [about(self.expected, 1, number, body) for number, body in enumerate(self.bodies)]
        self.frames = [list(chunks(*both)) for both in zip(self.abouts, self.bodies, strict=True)]

    def again(self, number: int, body: bytes, **changed: object) -> list[bytes]:
        """The message of a round with another body, announced as one who means harm would: its hash is right."""
        said = sealed(self.abouts[number]._replace(length=len(body), **changed), body)
        return list(chunks(said, body))


SMALL, LARGE = Honest(5), Honest(150_000)
Spoil = Callable[[np.random.Generator, Honest], Iterator[bytes]]


def _flipped(rng: np.random.Generator, content: bytes) -> bytes:
    spoilt = bytearray(content)
    spoilt[rng.integers(len(spoilt))] ^= 1 << rng.integers(8)
    return bytes(spoilt)


def _with_value(rng: np.random.Generator, honest: Honest, leaf: str, value: float) -> Iterator[bytes]:
    body = bytearray(honest.bodies[0])
    for one, at in honest.schema.places():
        if one.name == leaf:
            place = at + 4 * int(rng.integers(one.size))
            body[place : place + 4] = np.float32(value).tobytes()
    yield from honest.again(0, bytes(body))


def truncated(rng, honest):
    for content in honest.frames[0]:
        yield content[: rng.integers(len(content))]


def oversized(rng, honest):
    yield honest.frames[0][0] + bytes(int(rng.integers(1, LONGEST_FRAME)))


def one_bit(rng, honest):
    for content in honest.frames[0]:
        yield _flipped(rng, content)


def not_finite(rng, honest):
    leaf = (".precision", ".precision_mean")[rng.integers(2)]
    yield from _with_value(rng, honest, leaf, rng.choice([np.nan, np.inf, -np.inf]))


def bad_precision(rng, honest):
    yield from _with_value(rng, honest, ".precision", rng.choice([0, -1, -1e-30, 1e-4, 1e9, 3e38]))


def another_shape(rng, honest):
    size = int(rng.integers(1, 9)) if honest is SMALL else 149_999
    other = belief(size)
    if rng.random() < 0.5:
        other = {".precision": other[".precision"][None], ".precision_mean": other[".precision_mean"][None]}
    schema = Schema.of(other)
    if schema != honest.schema:
        yield from honest.again(0, encoded(other, schema), schema=rng.choice([schema.hash, honest.schema.hash]))


def another_header(rng, honest):
    """The numbers are in their places, but the body's own header says something else, in as many bytes."""
    begin = len(honest.schema.header)
    text = bytearray(honest.bodies[0][8:begin])
    word = rng.choice([b"F32", b"precision", b"data_offsets", b"}"])
    place = text.find(word)
    text[place] ^= 1 << rng.integers(7)
    yield from honest.again(0, honest.bodies[0][:8] + bytes(text) + honest.bodies[0][begin:])


def long_header(rng, honest):
    """A body that announces a header of 100 MB; a frame that does."""
    length = int(rng.integers(1 << 16, 1 << 32))
    yield from honest.again(0, length.to_bytes(8, "little") + honest.bodies[0][8:])
    yield bytes((Kind.BELIEF,)) + min(length, 2**32 - 1).to_bytes(4, "big") + honest.frames[0][0][5:]


def long_body(rng, honest):
    length = int(rng.choice([len(honest.bodies[0]) + 1, 100 << 20, 1 << 40, 2**53 - 1]))
    said = honest.abouts[0]._replace(length=length)
    yield frame(Kind.BELIEF, said.header(), honest.bodies[0][: 1 << 20])


def replayed(rng, honest):
    yield from honest.frames[1]
    for number in rng.permutation(2):
        yield from honest.frames[number]


def another_study(rng, honest):
    yield from honest.again(0, honest.bodies[0], study=name(f"another {rng.integers(1000)}"))


def another_sender(rng, honest):
    yield from honest.again(0, honest.bodies[0], sender=name(STRANGER))


def another_epoch(rng, honest):
    yield from honest.again(0, honest.bodies[0], epoch=int(rng.choice([0, 1, 4, 5, 2**53 - 1])))


def another_form(rng, honest):
    yield from honest.again(0, honest.bodies[0], form="half")


def mixed_up(rng, honest):
    """Chunks of several messages lost, repeated and out of order."""
    pieces = [content for frames in honest.frames for content in frames]
    for place in rng.integers(len(pieces), size=rng.integers(1, 9)):
        yield pieces[place]


def odd_json(rng, honest):
    said = honest.abouts[0].header()
    odd = rng.choice(["nested", "spaced", "nan", "huge", "twice", "list", "latin", "more", "fewer", "float", "true"])
    text = {
        "nested": "[" * 60_000,
        "spaced": json.dumps(said),
        "nan": json.dumps({**said, "round": float("nan")}, sort_keys=True, separators=(",", ":")),
        "huge": '{"round":' + "9" * 50_000 + "}",
        "twice": '{"round":1,"round":1}',
        "list": "[]",
        "latin": '{"round":"é"}',
        "more": json.dumps({**said, "x": 0}, sort_keys=True, separators=(",", ":")),
        "fewer": json.dumps({"round": 1}, sort_keys=True, separators=(",", ":")),
        "float": json.dumps({**said, "round": 0.0}, sort_keys=True, separators=(",", ":")),
        "true": json.dumps({**said, "incarnation": True}, sort_keys=True, separators=(",", ":")),
    }[odd].encode("latin-1")
    yield bytes((Kind.BELIEF,)) + len(text).to_bytes(4, "big") + text + honest.bodies[0][: 1 << 20]


def odd_fields(rng, honest):
    """One field of the header is something else."""
    field = str(rng.choice(list(About._fields)))
    values = [
        None,
        True,
        -1,
        0.5,
        "",
        "x" * 64,
        "A" * 64,
        [],
        {},
        [[]],
        [["a", 1, "b"]],
        2**53,
        10**30,
        "\ud800",
        "half",
    ]
    said = {**honest.abouts[0].header(), field: values[rng.integers(len(values))]}
    if said != honest.abouts[0].header():
        yield frame(Kind.BELIEF, said, honest.bodies[0][: 1 << 20])


def garbage(rng, honest):
    kind = bytes((int(rng.integers(8)),))
    yield (kind if rng.random() < 0.5 else b"") + rng.bytes(int(rng.integers(200)))


SPOILT: tuple[Spoil, ...] = (
    truncated,
    oversized,
    one_bit,
    not_finite,
    bad_precision,
    another_shape,
    another_header,
    long_header,
    long_body,
    replayed,
    another_study,
    another_sender,
    another_epoch,
    another_form,
    mixed_up,
    odd_json,
    odd_fields,
    garbage,
)
HARMLESS = (mixed_up, replayed)  # in these an honest message may arrive whole


def play(spoil: Spoil, honest: Honest, rng: np.random.Generator) -> list[str]:
    """Send what was spoilt, then an honest message, which must arrive; the reasons of what was refused.

    Whatever is taken must be byte for byte what was sent, once; anything else than Refused is a mistake.
    """
    receiver, reasons, lines = Receiver(honest.expected), [], []
    for content in spoil(rng, honest):
        try:
            receiver.receive(content)
        except Refused as refused:
            lines.append(str(refused))
            reasons.append(refused.reason)
    assert all(line.isprintable() and len(line) < 400 for line in lines), lines
    sent = list(zip(honest.abouts, honest.bodies, strict=True))
    assert all(one in sent for one in receiver.taken), f"{spoil.__name__} was taken"
    assert len({said.round for said, _ in receiver.taken}) == len(receiver.taken), f"{spoil.__name__} was taken twice"
    assert spoil in HARMLESS or not receiver.taken, f"{spoil.__name__} was taken"
    if not receiver.taken or receiver.taken[-1] != sent[2]:
        for content in honest.frames[2]:
            receiver.receive(content)
        assert receiver.taken[-1] == sent[2]
    return reasons
