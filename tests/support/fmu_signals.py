"""Signals of generated programs and their units."""

import re

UNITS = re.compile(r"1(/s2?)?|(m|rad)(/s2?)?|N( m)?|J|kg( m2?)?|\(N( m)?\)/\(.+\)|N/m|N m/rad|N s/m|N m s/rad|1/s2?")


def check_signals(signals: list[dict], model: str) -> None:
    for direction in ("input", "output", "parameter"):
        own = [signal for signal in signals if signal["direction"] == direction]
        assert [signal["index"] for signal in own] == list(range(len(own))), (model, direction)
        for signal in own:
            assert UNITS.fullmatch(signal["unit"]), (model, signal)
            assert signal["name"] and "[" not in signal["name"].replace(".R[", ""), (model, signal)
        told = [(signal["group"], signal["name"]) for signal in own]
        assert len(set(told)) == len(told), (model, direction)
