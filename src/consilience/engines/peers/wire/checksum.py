"""The checksum of a message: that what arrives is what was made ready, whatever memory and software lay between.

TLS sees to it that nobody else changes a byte, and who sends a message may say in it what it likes, so nothing hangs on
somebody being unable to find two bodies with one checksum. What is wanted is that damage is found, at the speed of
memory: a polynomial of the body (GMAC: AES-GCM that encrypts nothing) under a key that is the header's SHA-256. Damage
goes unnoticed once in 2¹²⁸ by the number of its blocks. SHA-256 of the body took as long as sending it.
"""

from __future__ import annotations

import hashlib

from consilience.engines.peers.wire.frames import Buffer

DIGITS = 32  # of a checksum
PIECE = 1 << 20  # bytes at a time, which stay in the processor's cache
NONCE = bytes(12)  # a key is of one header, and encrypts nothing


class Checksum:
    """Of a header, and of a body piece by piece.

    >>> whole, pieces = Checksum(b"header"), Checksum(b"header")
    >>> whole.update(b"a body")
    >>> pieces.update(b"a "), pieces.update(b"body")
    (None, None)
    >>> whole.hexdigest() == pieces.hexdigest(), len(whole.hexdigest())
    (True, 32)
    """

    def __init__(self, header: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import GCM

        key = hashlib.sha256(header).digest()
        self._sum = Cipher(AES(key), GCM(NONCE)).encryptor()
        self._found = ""

    def update(self, body: Buffer) -> None:
        """Go on with these bytes."""
        whole = memoryview(body)
        for at in range(0, len(whole), PIECE):
            self._sum.authenticate_additional_data(whole[at : at + PIECE])

    def hexdigest(self) -> str:
        """The checksum of all that was given; nothing can be added then."""
        if not self._found:
            self._sum.finalize()
            self._found = self._sum.tag.hex()
        return self._found
