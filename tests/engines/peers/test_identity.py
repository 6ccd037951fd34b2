"""Keys, homes and cards: a key is its owner's alone, never written over, and what belongs together is checked."""

import hashlib
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from people import person

from consilience.engines.peers import identity, words
from consilience.engines.peers.card import Card
from consilience.engines.peers.keys import check_certificate, check_dates, fixed_name, id_of, new_key, self_signed
from consilience.engines.peers.names import peer_address, peer_name
from consilience.errors import InputError

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


def test_a_home_is_its_owners_alone_whatever_the_umask(home):
    before = os.umask(0)
    try:
        made = identity.create(home, "north", "localhost:9000")
    finally:
        os.umask(before)
    assert mode(home) == 0o700
    assert mode(home / "key.pem") == 0o600
    assert sorted(file.name for file in home.iterdir()) == ["certificate.pem", "key.pem", "north.card"]
    assert identity.load(home).card == made.card
    assert identity.load(home).private_pem() == made.private_pem() == (home / "key.pem").read_bytes()
    for public in ("certificate.pem", "north.card"):
        assert b"PRIVATE" not in (home / public).read_bytes()


@pytest.mark.parametrize("allowed", [0o640, 0o604, 0o660, 0o601, 0o644])
def test_a_key_that_others_can_reach_is_refused(home, allowed):
    identity.create(home, "north")
    (home / "key.pem").chmod(allowed)
    with pytest.raises(InputError, match=rf"key.pem'.* others can read this key \(mode {allowed:o}\): chmod 600"):
        identity.load(home)


@pytest.mark.parametrize("there", ["key.pem", "certificate.pem", "south.card"])
def test_nothing_is_written_over(home, there):
    home.mkdir(mode=0o700)
    (home / there).write_text("mine")
    with pytest.raises(InputError, match=f"{there}' is there already, and is never written over"):
        identity.create(home, "north")
    assert [file.name for file in home.iterdir()] == [there]
    assert (home / there).read_text() == "mine"


def test_a_folder_that_others_look_into_is_no_home(home):
    home.mkdir(mode=0o755)
    with pytest.raises(InputError, match="others can look into"):
        identity.create(home, "north")
    assert not list(home.iterdir())


def test_what_does_not_belong_together_is_refused(home, tmp_path):
    identity.create(home, "north")
    other = tmp_path / "other"
    identity.create(other, "north")
    for file, line in (("key.pem", "is not the card of its"), ("certificate.pem", "not the one in the card")):
        kept = (home / file).read_bytes()
        (home / file).write_bytes((other / file).read_bytes())
        with pytest.raises(InputError, match=line):
            identity.load(home)
        (home / file).write_bytes(kept)
    identity.load(home)
    (home / "other.card").write_bytes((other / "north.card").read_bytes())
    with pytest.raises(InputError, match=r"must have one file NAME.card, has 2"):
        identity.load(home)


@pytest.mark.parametrize("content", [b"", b"x", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_one_line(home, content):
    identity.create(home, "north")
    (home / "key.pem").write_bytes(content)
    with pytest.raises(InputError, match=r"home: cannot read '.*key.pem'") as error:
        identity.load(home)
    assert len(str(error.value).splitlines()) == 1


def test_a_key_on_another_curve_is_refused(home):
    identity.create(home, "north")
    other = ec.generate_private_key(ec.SECP384R1())
    (home / "key.pem").write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(InputError, match="not a key that `consilience peer init` makes"):
        identity.load(home)


def test_no_home(tmp_path):
    with pytest.raises(InputError, match=r"has no key; consilience peer init NAME makes one there"):
        identity.load(tmp_path)


def test_an_id_is_the_hash_of_the_public_key():
    north = person("north")
    public = north.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert north.id == hashlib.sha256(public).hexdigest() == id_of(north.certificate)
    again = self_signed(north.key, NOW, 1)
    assert again != north.certificate
    assert id_of(again.encode()) == north.id


def test_a_certificate_names_its_key_and_nothing_else():
    north = person("north")
    read = x509.load_pem_x509_certificate(north.certificate.encode())
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [fixed_name(north.id)] == [f"{north.id[:32]}.consilience"]
    assert read.subject == read.issuer
    assert not read.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    check_certificate(north.certificate, north.id, "north")


def test_other_certificates_are_refused():
    north, south = person("north"), person("south")
    with pytest.raises(InputError, match="it: its certificate is of another key"):
        check_certificate(south.certificate, north.id, "it")
    for odd in (north.certificate + south.certificate, "hello\n" + north.certificate, north.certificate + "\n"):
        with pytest.raises(InputError, match="it: its certificate is not one that"):
            check_certificate(odd, north.id, "it")
    with pytest.raises(InputError, match="it: its certificate cannot be read"):
        check_certificate("x", north.id, "it")
    issued = _issued(north.key, "another.host", north.key)
    with pytest.raises(InputError, match="it: its certificate is not one that"):
        check_certificate(issued, north.id, "it")
    by_south = _issued(north.key, fixed_name(north.id), south.key)
    with pytest.raises(InputError, match="it: its certificate is not one that"):
        check_certificate(by_south, north.id, "it")


def _issued(key, name, by):
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    built = x509.CertificateBuilder().subject_name(named).issuer_name(named).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
    built = built.add_extension(x509.BasicConstraints(False, None), True)
    return built.sign(by, SHA256()).public_bytes(Encoding.PEM).decode()


def test_certificates_have_their_time():
    made = self_signed(new_key(), NOW, 10)
    check_dates(made, NOW)
    check_dates(made, NOW - timedelta(hours=23))  # clocks differ
    check_dates(made, NOW + timedelta(days=9))
    with pytest.raises(
        InputError, match=r"north: its certificate is valid from 2029-12-31 00:00 UTC on; the clock here"
    ):
        check_dates(made, NOW - timedelta(days=2), "north")
    with pytest.raises(InputError, match=r"expired at 2030-01-11 00:00 UTC; the clock here says 2030-01-12 00:00 UTC"):
        check_dates(made, NOW + timedelta(days=11))


def test_ten_years_unless_told_otherwise(home, tmp_path):
    made = identity.create(home, "north", now=NOW)
    check_dates(made.certificate, NOW + timedelta(days=3649))
    short = identity.create(tmp_path / "short", "north", now=NOW, days=1)
    with pytest.raises(InputError, match="expired"):
        check_dates(short.certificate, NOW + timedelta(days=2))


def test_words_never_change():
    listed = "\n".join(words.WORDS)
    assert hashlib.sha256(listed.encode()).hexdigest() == WORDS
    assert len(set(words.WORDS)) == 256
    assert len({word[:4] for word in words.WORDS}) == 256
    assert words.words("0001020304050607" + "ff" * 24) == "acid acorn actor adobe agent alarm album alley"


WORDS = "3ac9373ff61aa2a562efe3936fcffb2ffbb16fce76c3c80420eaea969fa741b0"


def test_a_peer_that_moves_keeps_its_key(home):
    made = identity.create(home, "north", "localhost:9000")
    moved = identity.moved(home, "north.example.org:443")
    assert (
        identity.load(home).card
        == moved.card
        == made.card._replace(address="north.example.org:443", signature=moved.card.signature)
    )
    assert mode(home / "key.pem") == 0o600


def test_a_new_key_is_countersigned_by_the_old_one(home, tmp_path):
    old = identity.create(home, "north")
    new = identity.create(tmp_path / "new", "north", replaces=old)
    read = identity.read_card(tmp_path / "new" / "north.card")
    assert read == new.card
    assert read.countersigned_by(old.certificate)
    assert not read.countersigned_by(person("south").certificate)
    assert not old.card.countersigned_by(old.certificate)
    south = person("south")
    forged = Card(*new.card[:4], replaces=read.replaces._replace(signature=identity.sign(south.key, b"x")))
    assert not forged.countersigned_by(old.certificate)
    stolen = south.card._replace(replaces=read.replaces)  # the word was given for another key
    assert not stolen.countersigned_by(old.certificate)


@pytest.mark.parametrize("name", ["north", "North-2", "a", "Zürich", "7", "a.b_c-d", "北", "x" * 60])
def test_names(name):
    assert peer_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a/b", "../x", ".x", "-x", "_x", "x" * 61, "a\n", "a:b", "a\x00", "Zu\u0308rich", "a."]
)
def test_names_that_nobody_has(name, home):
    with pytest.raises(InputError, match="name: must be 1 to 60 letters"):
        identity.create(home, name)
    assert not home.exists()


@pytest.mark.parametrize("address", ["", "localhost:1", "10.0.0.1:65535", "a.example.org:443", "[::1]:9000", "x-1:80"])
def test_addresses(address):
    assert peer_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        *("localhost", ":9000", "a:", "a:0", "a:65536", "a:-1", "a:1.5", "a:١", "a b:1", "a:090", "::1:9000", "a:1\n"),
        *("[10.0.0.1]:1", "0.0.0.0:9000", "[::]:9000", "1.2.3:4", "a..b:1", "-a:1", "http://a:1", "é:1", "[a]:1"),
        "[fe80::1%x]:1",
    ],
)
def test_addresses_where_nobody_is(address, home):
    with pytest.raises(InputError, match="address: must be HOST:PORT"):
        identity.create(home, "north", address)
    assert not home.exists()


def test_a_new_key_has_the_old_ones_name_and_keeps_its_word_when_it_moves(home, tmp_path):
    old = identity.create(home, "north")
    with pytest.raises(InputError, match="--replaces: the key is that of 'north'"):
        identity.create(tmp_path / "new", "south", replaces=old)
    assert not (tmp_path / "new").exists()
    identity.create(tmp_path / "new", "north", replaces=old)
    assert identity.moved(tmp_path / "new", "localhost:9001").card.countersigned_by(old.certificate)
