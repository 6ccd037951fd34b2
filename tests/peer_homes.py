"""Homes of three peers with a file each, who have joined a study of them."""

import numpy as np

import consilience as cs
from consilience.described.settings import validate
from consilience.engines.peers import identity
from consilience.engines.peers.steward import Stewardship
from consilience.engines.peers.study import Study
from consilience.engines.peers.transport.ports import free_ports
from consilience.experiments.learn.agreed import agreed
from consilience.experiments.learn.description import Config
from consilience.learning.home import join
from consilience.runs import run

NAMES, ROUNDS = ("north", "south", "west"), 3
NUMBERS = {f"x{k}": {"kind": "number"} for k in range(3)}
LABEL, NUMBER = {"kind": "label", "levels": ["no", "yes"]}, {"kind": "target"}
RULES = {
    "pooling": {"learner": {"kind": "variational"}, "consensus": {"kind": "pooling"}},
    "sites": {"learner": {"kind": "natural"}, "consensus": {"kind": "sites"}},
    "corrected": {"learner": {"kind": "natural", "pull": 0.0, "correction": 1.0}, "consensus": {"kind": "sites"}},
    "natural": {"learner": {"kind": "natural"}, "consensus": {"kind": "pooling"}},
    "gossip": {"learner": {"kind": "gradient"}, "consensus": {"kind": "pooling"}},
    "laplace": {"learner": {"kind": "laplace"}, "consensus": {"kind": "sites"}},
    "tracking": {"learner": {"kind": "laplace"}, "consensus": {"kind": "tracking"}},
    # What the data of a linear regression says does not depend on where one stands: nothing needs to be damped.
    "linear": {
        "learner": {"kind": "laplace"},
        "consensus": {"kind": "tracking", "damping": 1.0},
        "likelihood": {"kind": "gaussian", "noise": 1.0},
    },
}


def made(folder, rule, rounds=ROUNDS, patience=120.0, names=NAMES, rows=(5, 40, 17), **settings):
    """Homes with a file each, and a study of them on a ring, which all have joined."""
    rng = np.random.default_rng(0)
    files, of_numbers = {}, rule == "linear"
    for name, many in zip(names, rows, strict=True):
        x = rng.normal(size=(many, 3)).round(3)
        middle = x @ [1, -2, 0.5]
        y = np.where(rng.random(many) < 1 / (1 + np.exp(-middle)), "yes", "no")
        y = (middle + rng.normal(size=many)).round(3) if of_numbers else y
        files[name] = folder / f"{name}.csv"
        lines = [",".join(map(str, row)) + f",{label}" for row, label in zip(x, y, strict=True)]
        files[name].write_text("\n".join(["x0,x1,x2,out", *lines]) + "\n")
    columns = {**NUMBERS, "out": NUMBER if of_numbers else LABEL}
    described = {
        "precision": "float64",
        "record_every": 1,
        "columns": columns,
        "model": {"kind": "mlp", "hidden": []},
        **settings,
    }
    task, _ = agreed({"experiment": "learn", **described, **RULES[rule]})
    study = Study.of({"name": "trial", "task": task, "policy": {"rounds": rounds, "patience": patience}})
    ports = free_ports(len(names))
    homes = [identity.create(folder / name, name, f"127.0.0.1:{port}") for name, port in zip(names, ports, strict=True)]
    bundle = Stewardship.begin(folder / "steward", study, "steward").add([home.card for home in homes])
    bundle = bundle.link(["ring"]).sign()
    bundle.write(folder / "study.bundle")
    for name in names:
        join(folder / name, folder / "study.bundle", files[name])
    return bundle, files, task


def simulated(folder, bundle, files, task, rounds=ROUNDS, **changes):
    """The same task with all files in one place."""
    network = {"kind": "matrix", "W": bundle.roster.weights().W.toarray().tolist(), **changes}
    shares = {"kind": "files", "files": {name: str(file) for name, file in files.items()}}
    values = {**task, "experiment": "learn", "rounds": rounds, "shares": shares, "network": network}
    run.carry_on(run.begin(validate(Config, values), folder))
    return cs.load(folder)
