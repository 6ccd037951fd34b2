"""Homes of three peers with a file each, who have joined a study of them."""

import numpy as np

from consilience.engines.peers import identity
from consilience.engines.peers.steward import Stewardship
from consilience.engines.peers.study import Study
from consilience.engines.peers.transport.ports import free_port
from consilience.experiments.learn.agreed import agreed
from consilience.learning.peer import Peer

NAMES, ROUNDS = ("north", "south", "west"), 3
COLUMNS = {f"x{k}": {"kind": "number"} for k in range(3)} | {"out": {"kind": "label", "levels": ["no", "yes"]}}
RULES = {
    "pooling": {"learner": {"kind": "variational"}, "consensus": {"kind": "pooling"}},
    "sites": {"learner": {"kind": "natural"}, "consensus": {"kind": "sites"}},
    "tracking": {"learner": {"kind": "laplace"}, "consensus": {"kind": "tracking"}},
}


def made(folder, rule, rounds=ROUNDS, patience=120.0):
    """Three homes with a file each, and a study of them on a ring, which all have joined."""
    rng = np.random.default_rng(0)
    files = {}
    for name, rows in zip(NAMES, (5, 40, 17), strict=True):
        x = rng.normal(size=(rows, 3)).round(3)
        y = np.where(rng.random(rows) < 1 / (1 + np.exp(-x @ [1, -2, 0.5])), "yes", "no")
        files[name] = folder / f"{name}.csv"
        lines = [",".join(map(str, row)) + f",{label}" for row, label in zip(x, y, strict=True)]
        files[name].write_text("\n".join(["x0,x1,x2,out", *lines]) + "\n")
    described = {"precision": "float64", "record_every": 1, "columns": COLUMNS, "model": {"kind": "mlp", "hidden": []}}
    task, _ = agreed({"experiment": "learn", **described, **RULES[rule]})
    study = Study.of({"name": "trial", "task": task, "policy": {"rounds": rounds, "patience": patience}})
    homes = [identity.create(folder / name, name, f"127.0.0.1:{free_port()}") for name in NAMES]
    bundle = Stewardship.begin(folder / "steward", study, "steward").add([home.card for home in homes])
    bundle = bundle.link(["ring"]).sign()
    bundle.write(folder / "study.bundle")
    for name in NAMES:
        Peer.join(folder / name, folder / "study.bundle", files[name])
    return bundle, files, task
