"""`consilience peer init` and `consilience study`: from nothing to a bundle, as people type it."""

import json
import os
import stat
import sys
import time
import tomllib

import pytest

from consilience.command import main as cli
from consilience.engines.peers import identity
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.steward import Stewardship
from consilience.experiments.learn.agreed import agreed, built, described_by

TASK = """experiment = "learn"
rounds = 7
seed = 0
[shares]
kind = "files"
[shares.files]
a = "a.csv"
[network]
kind = "ring"
agents = 3
[model]
kind = "mlp"
hidden = []
[columns.size]
kind = "number"
centre = 3.0
[columns.age]
kind = "number"
[columns.ill]
kind = "label"
levels = ["no", "yes"]
"""


@pytest.fixture
def consilience(capsys, monkeypatch, tmp_path):
    """Run the command in a new folder; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TASK)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["consilience", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


@pytest.fixture
def done(consilience):
    """Run what must end well; gives what was printed."""

    def call(*words):
        code, out, err = consilience(*words)
        assert (code, err) == (0, "")
        return out

    return call


@pytest.fixture
def refused(consilience):
    """Run what must be refused in one line; gives the line."""

    def call(*words):
        code, out, err = consilience(*words)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err.removeprefix("error: ").removesuffix("\n")

    return call


def peers(done, *names):
    for number, name in enumerate(names):
        done("peer", "init", name, "--listen", f"localhost:{9000 + number}", "--home", f"home-{name}", "-q")
    return [f"home-{name}/{name}.card" for name in names]


def test_a_key_and_what_to_do_next(done, refused, tmp_path):
    out = done("peer", "init", "north", "--listen", "localhost:9000")
    made = identity.load(tmp_path / "peer")
    assert f"north: {identity.words(made.id)}\n" in out
    assert "next: send peer/north.card to the study's steward" in out
    assert "read the eight words out" in out
    assert stat.S_IMODE((tmp_path / "peer" / "key.pem").stat().st_mode) == 0o600
    assert "nobody can dial you" not in out
    assert refused("peer", "init", "north").startswith("home: 'peer/key.pem' is there already, and is never")
    told = json.loads(done("peer", "init", "north", "--same-key", "--listen", "localhost:9001", "--json"))
    assert (told["id"], told["address"]) == (made.id, "localhost:9001")
    assert identity.load(tmp_path / "peer").card.address == "localhost:9001"
    assert "is that of 'north'" in refused("peer", "init", "south", "--same-key")
    assert "kept and replaced" in refused("peer", "init", "north", "--same-key", "--replaces", "peer")
    second = ("peer", "init", "north", "--home", "second", "--key-of", "peer")
    assert json.loads(done(*second, "--json"))["address"] == "localhost:9001"
    assert identity.load(tmp_path / "second").card[:4] == identity.load(tmp_path / "peer").card[:4]
    assert "second/key.pem' is there already" in refused(*second)
    assert "for the home that has the key" in refused("peer", "init", "north", "--same-key", "--key-of", "peer")
    assert "is that of 'north'" in refused("peer", "init", "east", "--home", "third", "--key-of", "peer")
    for verb in ("start", "status", "check", "leave"):
        assert refused("peer", verb, "--home", "nowhere") == (
            "home: 'nowhere' has no key; consilience peer init NAME makes one there"
        )
    assert "nobody can dial you" in done("peer", "init", "east", "--home", "elsewhere")
    assert "address: must be HOST:PORT" in refused("peer", "init", "west", "--listen", "9000", "--home", "west")
    assert not (tmp_path / "west").exists()


def test_from_nothing_to_a_bundle(done, tmp_path):
    cards = peers(done, "north", "south", "east")
    out = done("study", "new", "tumours", "--task", "mine.toml", "--rule", "sites", "--set", "policy.patience=5")
    assert "not part of a study, left out: shares, network" in out
    assert "next: collect the cards of all who take part, then: consilience study add NAME.card" in out
    out = done("study", "add", *cards)
    for name in ("north", "south", "east"):
        assert identity.words(identity.load(tmp_path / f"home-{name}").id) in out
    assert "next: consilience study links ring\n" in out
    out = done("study", "links", "ring")
    assert "next: consilience study sign\n" in out
    out = done("study", "sign")
    assert "wrote study/study.bundle: tumours, epoch 1, 3 members" in out
    assert "consilience peer join study.bundle --data mine.csv" in out
    made = Bundle.read(tmp_path / "study" / "study.bundle")
    assert (made.study.policy.rounds, made.study.policy.patience) == (7, 5.0)
    assert made.study.task["consensus"]["kind"] == "sites"
    assert list(made.study.task["columns"]) == ["size", "age", "ill"]
    learnt = built(made.study.task)
    assert (learnt.shape, learnt.label_names, learnt.model.size) == ((2,), ("no", "yes"), 6)
    told = json.loads(done("study", "show", "study/study.bundle", "--json"))
    assert [each["name"] for each in told["members"]] == ["north", "south", "east"]
    assert told["weights"]["0"] == pytest.approx({"0": 1 / 3, "1": 1 / 3, "2": 1 / 3})
    assert told["steward"]["words"] == identity.words(made.steward.id)
    shown = done("study", "show", "study/study.bundle")
    assert f"signed by steward: {identity.words(made.steward.id)}" in shown
    assert "nothing has changed" in done("study", "show")
    assert identity.words(made.roster.members[0].id) in done("study", "show", cards[0])
    assert json.loads(done("study", "show", cards[0], "--json"))["address"] == "localhost:9000"


def test_joining_and_leaving(done, refused, tmp_path):
    cards = peers(done, "north", "south", "east")
    done("study", "new", "tumours", "--task", "mine.toml", "-q")
    done("study", "add", *cards[:2], "-q")
    done("study", "links", "complete", "-q")
    done("study", "sign", "-q")
    assert "next: consilience study sign" in done("study", "add", cards[2])
    assert json.loads(done("study", "sign", "--json"))["epoch"] == 2
    assert "what was pooled from it stays pooled" in done("study", "remove", "south")
    (tmp_path / "mine.csv").write_text("size,age,ill\n" + "1,2,no\n3,4,yes\n" * 4)
    join = ("peer", "join", "study/study.bundle", "--home", "home-north")
    assert "--data: is needed to join a study" in refused(*join)
    (tmp_path / "first.bundle").write_bytes((tmp_path / "study" / "study.bundle").read_bytes())
    told = done(*join, "--data", "mine.csv")
    assert "epoch 2, with 6 rows of mine.csv to learn from, and 2 held out to judge by\n" in told
    assert refused(*join, "--data", "none.csv").startswith("data: cannot read '")
    assert "a newer roster goes from peer to peer" in done("study", "sign")
    assert "joined tumours, epoch 3\n" in done(*join)
    older = ("peer", "join", "first.bundle", "--home", "home-north", "--data", "mine.csv")
    assert "joined tumours, epoch 3, with" in done(*older)  # what the home has is newer than what was given
    done("peer", "join", "first.bundle", "--home", "home-south", "--data", "mine.csv", "-q")
    (tmp_path / "home-south" / "study.bundle").write_bytes((tmp_path / "study" / "study.bundle").read_bytes())
    removed = "south was removed in epoch 3; ask the steward"
    assert removed in refused("peer", "start", "--home", "home-south")
    assert removed in refused("peer", "join", "first.bundle", "--home", "home-south", "--data", "mine.csv")
    done("study", "new", "others", "--task", "mine.toml", "--home", "other", "-q")
    done("study", "add", *cards, "--home", "other", "-q")
    done("study", "links", "ring", "--home", "other", "-q")
    done("study", "sign", "--home", "other", "-q")
    assert "has joined another study" in refused("peer", "join", "other/study.bundle", "--home", "home-north")
    assert "south: removed in epoch 3" in done("study", "show", "study/study.bundle")
    assert "removed in epoch 3 and cannot come back" in refused("study", "add", cards[1])
    assert "nobody is called 'south'" in refused("study", "remove", "south")
    new = ("peer", "init", "north", "--home", "new", "--replaces", "home-north", "--listen", "localhost:9005")
    assert "study add --replaces north north.card" in done(*new)
    assert "'north' is a member already" in refused("study", "add", "new/north.card")
    other_key = "north is not in its roster with this key, but with another one"
    assert other_key in refused("peer", "join", "study/study.bundle", "--home", "new", "--data", "mine.csv")
    done("study", "add", "--replaces", "north", "new/north.card", "-q")
    done("study", "sign", "-q")
    assert "north: its key was replaced in epoch 4" in done("study", "show")
    assert Bundle.read(tmp_path / "study" / "study.bundle").roster.numbers == (0, 2)


def test_links_with_trusts(done, refused, tmp_path):
    done("study", "new", "tumours", "--task", "mine.toml", "-q", "--home", "here")
    cards = peers(done, "north", "south")
    done("study", "add", *cards, "--home", "here", "-q")
    (tmp_path / "w.csv").write_text("hearer,heard,trust\nnorth,south,0.25\nsouth,north,0.5\n")
    out = done("study", "links", "w.csv", "--home", "here")
    assert "south 0.25" in out
    assert "next: consilience study sign --home here" in out
    told = json.loads(done("study", "links", "north:south", "--home", "here", "--json"))
    assert told["weights"] == {"0": {"0": 0.5, "1": 0.5}, "1": {"0": 0.5, "1": 0.5}}
    assert "links: are a rule (ring, complete, star)" in refused("study", "links", "rign", "--home", "here")
    assert "No such file" in refused("study", "links", "none.csv", "--home", "here")
    assert "'study' has no study.toml" in refused("study", "sign")


def test_edited_files_are_refused_by_name(done, refused, tmp_path):
    cards = peers(done, "north")
    done("study", "new", "tumours", "--task", "mine.toml", "-q")
    done("study", "add", *cards, "-q")
    done("study", "sign", "-q")
    for file, words in (
        ("study/study.bundle", ("study", "show", "study/study.bundle")),
        (cards[0], ("study", "add", cards[0])),
        ("study/study.toml", ("study", "sign")),
        ("study/roster.json", ("study", "sign")),
    ):
        kept = (tmp_path / file).read_bytes()
        for place in (0, len(kept) // 3, len(kept) // 2, len(kept) - 2):
            (tmp_path / file).write_bytes(kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :])
            assert file in refused(*words)
        (tmp_path / file).write_bytes(kept)
    done("study", "sign", "-q")
    os.chmod(tmp_path / "study" / "key.pem", 0o644)
    assert "study/key.pem': others can read this key" in refused("study", "sign")


def test_a_card_that_has_expired(done, refused, tmp_path):
    done("study", "new", "tumours", "--task", "mine.toml", "-q")
    long_ago = identity.datetime.fromtimestamp(time.time() - 10 * 86400, identity.UTC)
    identity.create(tmp_path / "old", "north", days=1, now=long_ago)
    assert "card of 'north': its certificate expired at" in refused("study", "add", "old/north.card")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--set", "task.learner.kind=magic"), "learner: unknown kind 'magic'"),
        (("--set", "task.learner.kind=laplace"), ""),
        (("--set", "task.learner.kind=laplace", "--set", "task.model.hidden=[3]"), "'laplace' is for models without"),
        (("--rule", "laplace", "--set", "task.model.hidden=[3]"), "'laplace' is for models without"),
        (("--rule", "fedavg"), "consensus: peers have pooling, sites, tracking, got 'fedavg'"),
        (("--rule", "central"), "consensus: peers have pooling, sites, tracking, got 'central'"),
        (("--rule", "alone"), "consensus: peers have pooling, sites, tracking, got 'alone'"),
        (("--rule", "gradient-tracking"), "consensus: peers have pooling, sites, tracking, got 'gradient-tracking'"),
        (("--rule", "magic"), "rule: unknown 'magic'"),
        (("--rule", "gossip", "--set", "task.consensus.kind=sites"), "consensus: sites sums up evidence"),
        (("--set", "task.learner.steps=same"), "learner.steps: must be 'own'"),
        (("--set", "task.consensus.alike=true"), "consensus.alike: is for networks that stay the same"),
        (("--rule", "sites", "--set", "task.consensus.passes=2"), "consensus.passes: peers pass on once a round"),
        (("--set", "task.model.kind=given"), "model: one that was given in Python cannot be written down"),
        (("--set", "task.likelihood.kind=gaussian"), "likelihood: gaussian predicts a number, the data has labels"),
        (("--set", "task.model.kind=cnn"), "model"),
        (("--set", "task.shares.kind=files"), "task.shares: is not a study's to say"),
        (("--set", "task.magic=1"), "magic: no such field"),
        (("--set", "task=1"), "task: should be a table"),
        (("--set", "policy=1"), "policy: should be a table"),
        (("--set", "input_shape=[3]"), "input_shape: the columns say that already"),
        (("--set", "wire=float16", "--rule", "sites"), "wire: float16 rounds means and sds of pooled beliefs"),
        (("--set", "wire=float16", "--rule", "gossip"), "wire: float16 rounds means and sds of pooled beliefs"),
        (("--set", "wire=float16"), ""),
        (("--set", "policy.kind=async"), ""),
        (("--rounds", "0"), "policy.rounds: should be greater than or equal to 1"),
        (("--set", "limits.most_precision=0"), "limits.most_precision: should be greater than 0"),
        (("--set", "limits.most_bytes=10"), "limits.most_bytes: what somebody says has at least"),
        (("--steward", "a b"), "name: must be 1 to 60 letters"),
    ],
)
def test_a_study_is_built_before_it_is_begun(consilience, tmp_path, words, line):
    code, _, err = consilience("study", "new", "tumours", "--task", "mine.toml", *words, "-q")
    if not line:
        assert (code, err) == (0, "")
        assert Stewardship.open(tmp_path / "study").study.policy.rounds == 7
        return
    assert code == 2
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('experiment = "star-digits"', "--task: must describe 'learn', as `consilience new` does, got 'star-digits'"),
        ("rounds = 3", "--task: must describe 'learn', as `consilience new` does, got None"),
        ("x", "is not TOML"),
        (TASK + "[magic]\na = 1\n", "magic: no such field"),
        (TASK.split("[columns")[0], "input_shape: is required where there are no columns"),
        (TASK.replace('"label"', '"ignore"').replace('levels = ["no", "yes"]', ""), "columns"),
    ],
)
def test_descriptions_that_are_no_task(refused, tmp_path, text, line):
    (tmp_path / "mine.toml").write_text(text)
    assert line in refused("study", "new", "tumours", "--task", "mine.toml")
    assert not (tmp_path / "study").exists()


def test_shares_that_are_arrays(done, refused, tmp_path):
    (tmp_path / "mine.toml").write_text(TASK.split("[columns")[0])
    shape, labels = ("--set", "input_shape=[8, 8]"), ("--set", 'labels=["0", "1", "2"]')
    begin = ("study", "new", "digits", "--task", "mine.toml")
    assert "likelihood: categorical predicts a label" in refused(*begin, *shape)
    assert "labels: must be at least two" in refused(*begin, *shape, "--set", 'labels=["a", "a"]')
    done(*begin, *shape, *labels, "-q")
    known = Stewardship.open(tmp_path / "study").study
    assert built(known.task, known.labels, known.input_shape).model.size == 65 * 3


def test_what_is_agreed_is_the_same_task():
    """A task that was agreed on says all that the description said of it, and reads back as itself."""
    task, _ = agreed(tomllib.loads(TASK))
    assert agreed(task) == (task, [])
    config = described_by(tomllib.loads(TASK))
    for field in task:
        assert getattr(described_by(task), field) == getattr(config, field)


def test_help_everywhere(done):
    for words in (["peer"], ["peer", "init"], ["study"], *(["study", verb] for verb in VERBS)):
        assert "Usage" in done(*words, "--help")


VERBS = ("new", "add", "links", "remove", "sign", "show")


def test_without_the_extra_one_line_says_what_to_install(refused, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("consilience.engines.peers")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    line = refused("peer", "init", "north")
    assert line == "peers: need cryptography and grpc, not installed here; pip install 'consilience[peers]'"
