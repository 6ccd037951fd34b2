"""An ID in words, to read out on the telephone.

The list never changes: two people compare what two versions of this program say. No two words begin with the same four
letters.
"""

from __future__ import annotations

SPOKEN = 8  # words: 64 bits of the ID
WORDS = """
acid acorn actor adobe agent alarm album alley amber anchor angle ankle apple april apron arena
arrow atlas attic autumn bacon badge bagel bamboo banjo barrel basket beach beaver bench berry bishop
blanket bottle branch bridge bronze brush bucket budget bugle butter cabin cactus camel canal candle canyon
carbon carpet castle cattle cedar cellar cherry chess chimney circus citrus clover cobra coffee comet copper
coral cotton cousin cradle crater cricket crystal cube curtain dahlia daisy dancer desert diamond dinner doctor
dolphin donkey dragon drum eagle earth easel echo elbow elephant engine envelope estate fabric falcon farmer
feather fender fiddle finger flag flute forest fossil fountain fox frost galaxy garden garlic gazelle geyser
ginger glacier glove goblin gospel granite guitar hammer harbour harvest hazel helmet hermit hockey honey hornet
hotel husky igloo indigo insect iron island ivory jacket jaguar jasmine jelly jersey jigsaw jockey judge
jungle kayak kernel kettle kidney kitten koala ladder lagoon lantern laptop lemon leopard lettuce library lizard
lobster lotus lumber magnet mango maple marble market medal melon mirror monkey morning mosaic muffin museum
napkin nectar needle nephew nickel noodle novel nutmeg oasis ocean olive onion orbit orchid otter oxygen
oyster packet paddle palace panda paper parrot peanut pebble pencil pepper piano pigeon pillow pirate planet
plaza pocket polo potato powder pumpkin puppet puzzle rabbit radar raven ribbon river robin rocket saddle
salmon sandal scarf school sentry shadow silver siren spider sponge stadium sugar summit sunset table tango
temple thunder ticket tiger toast tomato tunnel turtle umbrella unicorn valley velvet violin volcano walnut zebra
""".split()  # noqa: SIM905


def words(id: str) -> str:
    """The first 64 bits of an ID as eight words of 256.

    >>> words("00ff" * 16)
    'acid zebra acid zebra acid zebra acid zebra'
    """
    return " ".join(WORDS[byte] for byte in bytes.fromhex(id)[:SPOKEN])
