"""Processor, shown functions and needed libraries of a shared library, from ELF, PE or Mach-O."""

import struct
from dataclasses import dataclass

ELF = {62: "x86_64", 183: "aarch64"}
PE = {0x8664: "x86_64", 0xAA64: "aarch64"}
MACH = {0x01000007: "x86_64", 0x0100000C: "aarch64"}
DYNAMIC, SYMBOLS_SHOWN = 6, 11  # kinds of sections of ELF
NEEDED = 1  # tag of ELF
LOADED, SYMBOLS = (0xC, 0x80000018, 0x8000001F), 2  # commands of Mach-O


@dataclass(frozen=True)
class Library:
    """Of one processor."""

    system: str
    processor: str
    shown: frozenset[str]
    needed: frozenset[str]


def libraries_in(data: bytes) -> list[Library]:
    """One for each processor."""
    if data.startswith(b"\x7fELF"):
        return [_elf(data)]
    if data.startswith(b"MZ"):
        return [_pe(data)]
    if data.startswith(b"\xca\xfe\xba\xbe"):
        (count,) = struct.unpack_from(">I", data, 4)
        places = [struct.unpack_from(">IIIII", data, 8 + 20 * k) for k in range(count)]
        return [_mach(data[at : at + size]) for _, _, at, size, _ in places]
    return [_mach(data)]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _elf(data: bytes) -> Library:
    (machine,) = struct.unpack_from("<H", data, 18)
    (sections,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, sections + size * k) for k in range(count)]
    shown, needed = set(), set()
    for _, kind, _, _, at, length, link, _, _, entry in heads:
        names = heads[link][4]
        if kind == SYMBOLS_SHOWN:
            for k in range(at, at + length, entry):
                name, info, _, where, value, _ = struct.unpack_from("<IBBHQQ", data, k)
                if where and value and info >> 4 in (1, 2):
                    shown.add(_text(data, names + name))
        elif kind == DYNAMIC:
            for k in range(at, at + length, 16):
                tag, value = struct.unpack_from("<QQ", data, k)
                if tag == NEEDED:
                    needed.add(_text(data, names + value))
    return Library("linux", ELF[machine], frozenset(shown), frozenset(needed))


def _pe(data: bytes) -> Library:
    (head,) = struct.unpack_from("<I", data, 60)
    assert data[head : head + 4] == b"PE\0\0"
    machine, count, _, _, _, optional, _ = struct.unpack_from("<HHIIIHH", data, head + 4)
    begin = head + 24
    tables = [struct.unpack_from("<II", data, begin + 112 + 8 * k) for k in range(2)]
    parts = [struct.unpack_from("<IIII", data, begin + optional + 40 * k + 8) for k in range(count)]

    def place(address: int) -> int:
        return next(at + address - start for size, start, raw, at in parts if start <= address < start + max(size, raw))

    names = place(tables[0][0])
    (number,) = struct.unpack_from("<I", data, names + 24)
    (listed,) = struct.unpack_from("<I", data, names + 32)
    shown = {_text(data, place(a)) for a in struct.unpack_from(f"<{number}I", data, place(listed))}
    needed, at = set(), place(tables[1][0])
    while True:
        *_, name, first = struct.unpack_from("<IIIII", data, at)
        if not name and not first:
            break
        needed.add(_text(data, place(name)).lower())
        at += 20
    return Library("windows", PE[machine], frozenset(shown), frozenset(needed))


def _mach(data: bytes) -> Library:
    magic, machine, _, _, count, _, _, _ = struct.unpack_from("<8I", data)
    assert magic == 0xFEEDFACF
    shown, needed, at = set(), set(), 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command in LOADED:
            needed.add(_text(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == SYMBOLS:
            symbols, number, names, _ = struct.unpack_from("<IIII", data, at + 8)
            for k in range(number):
                name, kind, section, _, _ = struct.unpack_from("<IBBHQ", data, symbols + 16 * k)
                if kind & 1 and not kind & 0x10 and section:  # outside, not private, defined here
                    shown.add(_text(data, names + name).removeprefix("_"))
        at += size
    return Library("darwin", MACH[machine], frozenset(shown), frozenset(needed))
