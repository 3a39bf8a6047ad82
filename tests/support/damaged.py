"""Bytes of files as transfers, editors and enemies leave them: cut, doubled, with other numbers and hostile words."""

import random

WORDS = (
    *(b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\0", b"\0", b"999999999999", b"-1", b"1e999"),
    *(b"nan", b"0x7fffffff", b"[[[[[[[[", b"{", b'"', b"&lol;", b"../../etc/passwd", b'<!DOCTYPE a [<!ENTITY b "c">]>'),
)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to twenty damages."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        if not data:
            break
        at, how = rng.randrange(len(data)), rng.randrange(7)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            del data[at:]
        elif how == 2:
            del data[at : at + rng.choice([1, 4, 16, 200])]
        elif how == 3:
            data[at:at] = data[at : at + rng.choice([4, 50, 400])] * rng.choice([1, 2, 50])
        elif how == 4:
            word = rng.choice(WORDS)
            data[at : at + len(word)] = word
        elif how == 5:
            data[at:at] = rng.choice(WORDS)
        else:
            digits = [k for k, byte in enumerate(data) if 48 <= byte < 58]
            if digits:
                data[rng.choice(digits)] = rng.choice(b"0123456789-.eE")
    return bytes(data)
