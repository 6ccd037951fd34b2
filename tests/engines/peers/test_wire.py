"""What is sent arrives, byte for byte; what differs from what was agreed in anything is refused, by name."""

import hashlib
import math
import subprocess
import sys
import tracemalloc
from contextlib import suppress

import jax.numpy as jnp
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load
from wire_cases import BOUNDS, LARGE, NEIGHBOUR, SMALL, STUDY, belief, name

from consilience.beliefs import Gaussian, MeanField
from consilience.consensus.tracking import Sums
from consilience.engines.peers.wire import (
    About,
    Assembler,
    Bounds,
    Entry,
    Expected,
    Kind,
    Leaf,
    Refused,
    Schema,
    about,
    by_owner,
    chunks,
    decoded,
    encoded,
    frame,
    halved,
    parsed,
    restored,
    sealed,
)
from consilience.engines.peers.wire.checksum import Checksum
from consilience.engines.peers.wire.frames import LONGEST_FRAME, LONGEST_HEADER, LONGEST_PAYLOAD
from consilience.engines.peers.wire.half import FURTHEST, PER_OCTAVE, PER_SD, on_wire
from consilience.engines.peers.wire.schema import ON_WIRE, named

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


def refused(reason, call, *arguments):
    with pytest.raises(Refused) as caught:
        call(*arguments)
    assert caught.value.reason == reason
    return str(caught.value)


@given(st.sampled_from(Kind), st.dictionaries(st.text(max_size=9), values, max_size=4), st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_a_frame_is_read_as_it_was_written(kind, header, payload):
    written = frame(kind, header, payload)
    found, read, rest = parsed(written)
    assert (found, read, bytes(rest)) == (kind, header, payload)
    assert frame(found, read, rest) == written


def test_a_frame_that_cannot_be_sent_is_not_made():
    longest = frame(Kind.BELIEF, {}, bytes(LONGEST_PAYLOAD))
    assert len(parsed(longest)[2]) == LONGEST_PAYLOAD
    for header, payload in (({}, bytes(LONGEST_PAYLOAD + 1)), ({"x": "x" * LONGEST_HEADER}, b"")):
        with pytest.raises(ValueError, match="longer than may be sent"):
            frame(Kind.BELIEF, header, payload)
    with pytest.raises(ValueError, match="JSON compliant"):
        frame(Kind.BELIEF, {"x": math.nan})


def test_the_payload_is_not_copied():
    content = bytearray(frame(Kind.ROSTER, {}, b"abc"))
    content[-1] = ord("d")
    view = parsed(content)[2]
    content[-3] = ord("x")
    assert bytes(view) == b"xbd"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", f"a frame has 5 to {LONGEST_FRAME} bytes, got 0"),
        (bytes(LONGEST_FRAME + 1), f"a frame has 5 to {LONGEST_FRAME} bytes, got {LONGEST_FRAME + 1}"),
        (b"\x02\x06\x40\x00\x00{}", "a header of 104857600 bytes was announced in a frame of 7"),
        (b"\x02\x00\x00\x00\x03{}", "a header of 3 bytes was announced in a frame of 7"),
        (b"\x02\x00\x00\x00\x02{}" + bytes(LONGEST_PAYLOAD + 1), "a payload has at most 1048576 bytes, got 1048577"),
        (b"\x09\x00\x00\x00\x02{}", "there is no frame of kind 9"),
    ],
)
def test_what_is_no_frame_is_refused(content, line):
    assert refused("frame", parsed, content) == line


@pytest.mark.parametrize("text", ["[]", '{"a": 1}', '{"a":NaN}', '{"a":1,"a":1}', '{"b":1,"a":1}', "{", '{"a":1e999}'])
def test_a_header_in_any_other_form_is_refused(text):
    content = b"\x02" + len(text).to_bytes(4, "big") + text.encode()
    line = f"a header must be canonical JSON of named values, got {text.encode()!r}"
    assert refused("frame", parsed, content) == line


dtypes = st.sampled_from(sorted(set(ON_WIRE) - {"float16"}))
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@given(st.lists(st.tuples(dtypes, shapes), min_size=1, max_size=6), st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_arrays_arrive_as_they_are_and_other_readers_read_them(kinds, seed):
    rng = np.random.default_rng(seed)
    arrays = {f"array {n}": (9 * rng.random(shape)).astype(dtype) for n, (dtype, shape) in enumerate(kinds)}
    schema = Schema.of(arrays)
    body = encoded(arrays, schema)
    assert len(body) == schema.bytes
    for read in (decoded(body, schema, BOUNDS), load(body)):
        assert set(read) == set(arrays)
        for key, array in arrays.items():
            assert read[key].dtype == array.dtype
            assert read[key].shape == array.shape
            np.testing.assert_array_equal(read[key], array)
    assert all(array.flags.aligned for array in decoded(bytearray(body), schema, BOUNDS).values())


def test_schemas_that_differ_in_anything_have_other_names():
    leaf = Leaf("a", "float32", (2, 3))
    others = [leaf._replace(name="b"), leaf._replace(dtype="float64"), leaf._replace(shape=(3, 2))]
    schemas = [Schema((one,)) for one in (leaf, *others)] + [Schema((leaf, others[0])), Schema((others[0], leaf))]
    assert len({schema.hash for schema in schemas}) == len(schemas)
    for bad in ((), (leaf, leaf), (leaf._replace(name="__metadata__"),), (leaf._replace(dtype="complex64"),)):
        with pytest.raises(ValueError, match=r"need a name each|are not sent"):
            Schema(bad)


def test_a_tree_is_named_by_its_places():
    sums = Sums(MeanField(jnp.ones(3), jnp.zeros(3)), jnp.ones(()))
    schema = Schema.of(sums)
    assert [leaf.name for leaf in schema.leaves] == [".evidence.precision", ".evidence.precision_mean", ".agents"]
    arrays = decoded(encoded(named(sums), schema), schema, BOUNDS)
    assert arrays[".agents"].shape == ()


def test_own_arrays_that_are_not_those_of_the_schema_are_a_mistake():
    arrays, schema = belief(3), Schema.of(belief(3))
    with pytest.raises(ValueError, match="was given"):
        encoded({".precision": arrays[".precision"]}, schema)
    with pytest.raises(ValueError, match=r"must be float32\[3\], is float64\[3\]"):
        encoded({**arrays, ".precision": arrays[".precision"].astype(float)}, schema)


def body_of(precision, dtype="float32", key=".precision"):
    arrays = {key: np.asarray(precision, dtype)}
    return encoded(arrays, Schema.of(arrays)), Schema.of(arrays)


@pytest.mark.parametrize(
    ("precision", "bounds", "line"),
    [
        ([1.0, 0.0], BOUNDS, "must be from 0.001 to 1e+08, got 0 to 1"),
        ([1.0, -1.0], BOUNDS, "must be from 0.001 to 1e+08, got -1 to 1"),
        ([1.0, 1e9], BOUNDS, "must be from 0.001 to 1e+08, got 1 to 1e+09"),
        ([0.0, -1e-30], Bounds(0, 1e8), "must be from 0 to 1e+08, got -1e-30 to 0"),
        (np.diag([1.0, -0.1]), Bounds(0, 1e8), "must be from 0 to 1e+08, got -0.1 to 1"),
        ([[1.0, 2.0], [2.0, 1.0]], Bounds(0, 1e8), "must be from 0 to 1e+08, got -1 to 3"),
        ([[1.0, 0.5], [0.4, 1.0]], BOUNDS, "must be symmetric, its halves differ by 0.1"),
        (np.full((2, 2), 3e38), BOUNDS, "must be from 0.001 to 1e+08, got 0 to 6e+38"),
    ],
)
def test_precisions_out_of_bounds_are_refused(precision, bounds, line):
    body, schema = body_of(precision)
    assert refused("precision", decoded, body, schema, bounds) == f".precision: {line}"


def test_full_precisions_at_the_end_of_their_range_are_refused():
    for entries in ([[1e308, -1e308], [1e308, 1e308]], [[1e308, 1e308], [1e308, 1e308]], np.full((9, 9), 1.7e308)):
        body, schema = body_of(entries, "float64")
        refused("precision", decoded, body, schema, Bounds(-1e300, 1e300))


def test_what_rounding_does_to_a_site_is_no_reason_to_refuse_it():
    """Three rows say nothing of most of twenty coefficients: eigenvalues of 0, up to rounding."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        rows = rng.normal(size=(3, 20)).astype(dtype)
        site = rows.T @ rows
        body, schema = body_of((site + site.T) / 2, dtype)
        decoded(body, schema, Bounds(0, 1e8))


def test_running_sums_may_be_negative():
    body, schema = body_of([-5.0, 5.0])
    np.testing.assert_array_equal(decoded(body, schema, Bounds(-1e8, 1e8))[".precision"], [-5, 5])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("key", [".precision", ".precision_mean", "w"])
def test_values_that_are_not_finite_are_refused(value, key):
    body, schema = body_of([1.0, value, 1.0], key=key)
    assert refused("finite", decoded, body, schema, Bounds(-np.inf, np.inf)) == f"{key}: every value must be finite"


def test_a_body_of_another_length_or_header_is_refused():
    body = SMALL.bodies[0]
    assert refused("length", decoded, body + b"\0", SMALL.schema, BOUNDS) == "a message must have 184 bytes, got 185"
    other = body.replace(b"F32", b"I32")
    line = (
        "a message must hold .precision float32[5], .precision_mean float32[5], and says that it holds something else"
    )
    assert refused("schema", decoded, other, SMALL.schema, BOUNDS) == line


def whole(frames, allowed):
    assembler = Assembler(allowed)
    return [assembler.add(*parsed(content)[1:]) for content in frames]


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_messages_of_any_length_arrive_whole(extra, count):
    body = np.random.default_rng(0).bytes(count * LONGEST_PAYLOAD + extra)
    said = sealed(SMALL.abouts[0]._replace(length=len(body)), body)
    frames = list(chunks(said, body))
    assert len(frames) == math.ceil(len(body) / LONGEST_PAYLOAD)
    assert all(len(content) <= LONGEST_FRAME for content in frames)
    assert whole(frames, lambda heard: heard.length) == [None] * (len(frames) - 1) + [(said, body)]


def test_a_new_message_takes_the_place_of_one_that_was_not_finished():
    frames = LARGE.frames[0][:1] + LARGE.frames[1]
    assert whole(frames, lambda heard: heard.length)[-1][0].round == 1


def test_chunks_out_of_place_are_refused_and_nothing_is_kept():
    first, second = LARGE.frames[0]
    for frames, reason in (
        ([second], "frame"),
        ([first, second, second], "frame"),
        ([first, LARGE.frames[1][1]], "frame"),
        ([first, second[:-1]], "length"),
        ([first[:-1]], "length"),
        ([first, bytes((Kind.BELIEF,)) + SMALL.frames[0][0][1:], second], "frame"),
    ):
        assembler = Assembler(lambda heard: heard.length)
        for content in frames[:-1]:
            assembler.add(*parsed(content)[1:])
        refused(reason, assembler.add, *parsed(frames[-1])[1:])
        assert len(assembler._body) == 0
    spoilt = second[:-1] + bytes((second[-1] ^ 1,))
    line = refused("hash", whole, [first, spoilt], lambda heard: heard.length)
    assert line == "the message of round 0 has not the checksum that was announced"


@pytest.mark.parametrize("changed", [{"round": 7}, {"incarnation": 2}, {"epoch": 2}, {"form": "half"}])
def test_the_checksum_is_of_what_a_message_says_of_itself_too(changed):
    said = SMALL.abouts[0]._replace(**changed)
    refused("hash", whole, chunks(said, SMALL.bodies[0]), lambda heard: heard.length)


def test_nothing_is_kept_before_it_is_allowed():
    """An announcement of a terabyte costs no memory, and neither do hundreds of them."""

    def allowed(heard):
        SMALL.expected.check(heard)
        return SMALL.schema.bytes

    assembler = Assembler(allowed)
    said = SMALL.abouts[0]._replace(length=1 << 40)
    header, payload = parsed(frame(Kind.BELIEF, said.header(), bytes(1 << 20)))[1:]

    def announced_often():
        for _ in range(300):
            with suppress(Refused):
                assembler.add(header, payload)

    announced_often()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    announced_often()
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now - before < 20_000
    assert peak - before < 200_000


@pytest.mark.parametrize(
    ("changed", "reason", "line"),
    [
        ({"study": name("other")}, "study", f"of study {name('other')[:12]}, this one is {name(STUDY)[:12]}"),
        ({"sender": name("other")}, "sender", f"by {name('other')[:12]}, this link is with {name(NEIGHBOUR)[:12]}"),
        ({"epoch": 1}, "epoch", "under roster 1, here it is 3"),
        ({"epoch": 4}, "epoch", "under roster 4, here it is 3"),
        ({"round": 0}, "older", "of round 0, that of round 0 is held"),
        ({"incarnation": 0, "round": 9}, "older", "of round 9, that of round 0 is held"),
        ({"form": "half"}, "schema", "sent as 'half', the study says 'exact'"),
        ({"length": 185}, "length", "must have 184 bytes, 185 were announced"),
        ({"schema": name("s")}, "schema", f"holds arrays {name('s')[:12]}, expected are {SMALL.schema.hash[:12]}"),
        ({"entries": (Entry(name("a"), 1, ""),)}, "schema", "must hold the parts of nobody but its sender"),
    ],
)
def test_a_message_that_is_not_expected_is_refused_before_its_body(changed, reason, line):
    expected = SMALL.expected._replace(newest=(1, 0))
    for fine in ({}, {"epoch": 2}, {"incarnation": 2, "round": 0}):
        assert expected.check(SMALL.abouts[1]._replace(**fine)) == SMALL.schema
    assert refused(reason, expected.check, SMALL.abouts[1]._replace(**changed)) == line


def test_no_message_is_longer_than_the_study_allows():
    expected = SMALL.expected._replace(most_bytes=100)
    assert refused("length", expected.check, SMALL.abouts[1]) == "must have at most 100 bytes, 184 were announced"


def test_a_header_says_everything_and_nothing_else():
    said = SMALL.abouts[0]
    assert About.read(said.header()) == said
    for field in About._fields:
        fewer = {key: value for key, value in said.header().items() if key != field}
        refused("frame", About.read, fewer)
        refused("frame", About.read, {**said.header(), field: None})
    refused("frame", About.read, {**said.header(), "more": 1})


def test_a_message_of_several_sites_holds_exactly_those():
    """As many as it says, of different owners; the schema follows from one site's and the owners."""
    site = {".precision": np.zeros(4), ".precision_mean": np.ones(4)}
    expected = Expected(name(STUDY), 1, name(NEIGHBOUR), Schema.of(site), several=True)
    owners = [name(f"owner {number}") for number in range(256)]
    entries = tuple(Entry(owner, number, "s" * 96) for number, owner in enumerate(owners))
    schema = expected.schema.of_each(owners)
    body = encoded({f"{owner}/{key}": array for owner in owners for key, array in site.items()}, schema)
    said = about(expected, 1, 5, body, entries=entries)
    [(heard, found)] = whole(chunks(said, body), lambda heard: expected.check(heard).bytes)
    assert heard == said
    arrays = by_owner(decoded(found, expected.check(heard), Bounds(0, 1e8)))
    assert list(arrays) == owners
    np.testing.assert_array_equal(arrays[owners[7]][".precision_mean"], np.ones(4))
    fewer = said._replace(entries=entries[:-1])
    refused("length", expected.check, fewer)
    refused("schema", expected.check, said._replace(entries=(*entries[:-1], Entry(name("other"), 1, ""))))
    refused("schema", expected.check, said._replace(entries=()))
    for bad in ([*said.header()["entries"], [name("more"), 1, ""]], said.header()["entries"][:1] * 2, [[1, 1, ""]], 5):
        refused("frame", About.read, {**said.header(), "entries": bad})


@given(
    st.lists(st.tuples(st.floats(-19.9, 11.9), st.floats(-2040, 2040)), min_size=1, max_size=50),
    st.sampled_from(["float32", "float64"]),
)
@settings(max_examples=100, deadline=None)
def test_half_the_bytes_lose_about_a_hundred_thousandth_of_a_nat_a_weight_and_no_more(weights, dtype):
    """For every sd from 2⁻²⁰ to 2¹² and every mean up to 2,040 sds; the bound is the module's."""
    log_sd, distance = np.array(weights).T
    sd = np.exp2(log_sd)
    arrays = {"precision": (sd**-2).astype(dtype), "precision_mean": (distance / sd).astype(dtype)}
    back = restored(halved(arrays), Schema.of(arrays))
    assert np.max(kl(arrays, back)) < (math.log(2) / 2 / PER_OCTAVE) ** 2 + 0.5 / (2 * PER_SD) ** 2 + 1e-6 < 1.1e-5


def kl(b, b_hat):
    """KL(b ‖ b̂) of each weight, in float64."""
    precision, other = (np.asarray(one["precision"], float) for one in (b, b_hat))
    mean, moved = (np.asarray(one["precision_mean"], float) / np.asarray(one["precision"], float) for one in (b, b_hat))
    ratio = other / precision
    return 0.5 * (ratio - 1 - np.log(ratio) + other * (mean - moved) ** 2)


def test_what_half_the_bytes_lose_in_beliefs_as_they_occur():
    """200,000 weights of sds .001 to .2 and means up to 2; plain float16 loses more where sds are small."""
    arrays = {key.removeprefix("."): array for key, array in belief(200_000).items()}
    lost = kl(arrays, restored(halved(arrays), Schema.of(arrays)))
    assert lost.max() < 1e-5
    assert lost.mean() < 4e-6
    sd, mean = np.float64(arrays["precision"]) ** -0.5, arrays["precision_mean"] / arrays["precision"]
    sd, mean = np.exp(np.float16(np.log(sd)).astype(float)), np.float16(mean).astype(float)
    plain = kl(arrays, {"precision": sd**-2, "precision_mean": mean * sd**-2})
    assert plain.max() > 0.05
    assert plain.mean() > 1e-3


def test_beyond_its_range_half_the_bytes_say_less_and_never_more():
    sd, mean = np.array([1e-9, 1e-3, 1e-3, 1e-6]), np.array([0.0, 100.0, -1e4, 5.0])
    arrays = {"precision": sd**-2, "precision_mean": mean * sd**-2}
    back = restored(halved(arrays), Schema.of(arrays))
    wide = back["precision"] ** -0.5
    assert (wide > sd).all()
    assert (np.abs(back["precision_mean"] / back["precision"] - mean) <= wide / PER_SD / 2 * (1 + 1e-9)).all()
    assert (wide <= np.maximum(2.0**-20, np.abs(mean) * PER_SD / FURTHEST * 2 ** (1 / PER_OCTAVE)) * (1 + 1e-9)).all()
    vague = {"precision": np.array([1e-9]), "precision_mean": np.array([0.0])}
    assert restored(halved(vague), Schema.of(vague))["precision"][0] == pytest.approx(2.0**-24, rel=0.02)
    with pytest.raises(ValueError, match="only positive precisions and means"):
        halved({"precision": np.zeros(1), "precision_mean": np.zeros(1)})
    with pytest.raises(ValueError, match="only positive precisions and means"):
        halved({"precision": np.ones(1), "precision_mean": np.full(1, 9e6)})


def test_half_the_bytes_are_half_the_bytes_and_checked_as_any():
    arrays = belief(100_000)
    schema = Schema.of(arrays)
    body = encoded(arrays, schema, "half")
    assert len(body) < len(encoded(arrays, schema)) / 2 + 100
    back = decoded(body, schema, BOUNDS, "half")
    np.testing.assert_allclose(back[".precision"], arrays[".precision"], rtol=0.006)
    assert refused("precision", decoded, body, schema, Bounds(1e-3, 1e3), "half").startswith(".precision: must be from")
    assert refused("length", decoded, body[:-4], schema, BOUNDS, "half")
    for bad, form in (({".value": np.ones(3)}, "half"), (arrays, "float8")):
        with pytest.raises(ValueError, match=r"only beliefs with independent|there is no form"):
            encoded(bad, Schema.of(bad), form)


def test_a_full_covariance_is_not_sent_in_half_the_bytes():
    full = Schema.of(named(Gaussian(jnp.eye(3), jnp.zeros(3))))
    with pytest.raises(ValueError, match="only beliefs with independent coordinates"):
        on_wire(full, "half")


def test_a_checksum_is_the_tag_of_a_body_under_the_key_of_its_header():
    body = np.random.default_rng(0).bytes(3_000_001)
    found = Checksum(b"header")
    for at in range(0, len(body), 700_001):  # in pieces of no round length
        found.update(memoryview(body)[at : at + 700_001])
    assert found.hexdigest() == AESGCM(hashlib.sha256(b"header").digest()).encrypt(bytes(12), b"", body).hex()
    for header, changed in ((b"Header", body), (b"header", body[:-1] + bytes([body[-1] ^ 1])), (b"header", body[:-1])):
        other = Checksum(header)
        other.update(changed)
        assert other.hexdigest() != found.hexdigest()


def test_the_wire_needs_neither_sockets_nor_jax_nor_what_peers_need():
    heavy = ("jax", "grpc", "cryptography", "ssl")
    program = f"import sys, consilience.engines.peers.wire; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
