"""A desk that notes what links report to it, for three members who share sites of two weights."""

import numpy as np

from consilience.engines.peers.desk import PROTOCOL, Agreed, Greeting
from consilience.engines.peers.roster import Member
from consilience.engines.peers.wire import Bounds, Schema
from consilience.errors import InputError

STUDY = "5" * 64
SITE = {"precision": np.array([2.0, 0.0]), "precision_mean": np.array([1.0, -1.0])}
MEMBERS = [Member(number, name, str(number) * 64, "", "there:1") for number, name in enumerate(("a", "b", "c"))]


class Reception:
    """Notes what a link reports."""

    def __init__(self, me, several=False, study=STUDY, epoch=3, protocol=PROTOCOL, least=0.0, sections="0" * 60):
        self.me, self.protocol, self.notes, self.said, self.rosters = MEMBERS[me], protocol, [], [], []
        numbers = {member.id: member.number for member in MEMBERS}
        bounds = Bounds(least, 10.0)
        self.now = Agreed(
            study, epoch, Schema.of(SITE), "exact", several, bounds, 1 << 20, 99, numbers, sections, epoch, len(numbers)
        )

    def agreed(self):
        return self.now

    def greeting(self):
        return Greeting(self.protocol, "1.0", self.now.study, self.now.epoch, 1, 0, 0.0, self.now.sections)

    def roster(self):
        return f"roster {self.now.epoch}"

    def offered(self, text, by):
        if text == "roster 0":
            raise InputError("the roster is older")
        self.rosters.append((text, by.name))

    def greeted(self, by, greeting):
        self.notes.append(("greeted", by.name))

    def arrived(self, by, said):
        self.said.append(said)

    def held(self):
        return {self.me.number: (4, 1)}

    def receipt(self, by, number, held):
        self.notes.append(("receipt", by.name, number, dict(held)))

    def parted(self, by, why, goodbye):
        self.notes.append(("parted", by.name, why))

    def genuine(self, entry):
        return entry.signature == f"by {entry.owner}"
