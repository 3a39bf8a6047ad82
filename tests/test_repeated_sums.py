"""Numbers that are added again and again become products, and nothing else changes."""

from __future__ import annotations

import numpy as np

from parflex.codegen.passes.repeated_sums import with_products
from parflex.codegen.program import Program


def numbered(instructions, outputs):
    return Program("sums", ("x", "d", "e"), (), tuple(instructions), 0, tuple((f"y{k}", k) for k in outputs))


def both(program, **given):
    """Outputs as the program has them, and with products."""
    return [np.array(list(own.evaluate(given).values())) for own in (program, with_products(program))]


def test_a_number_that_is_added_sixteen_times_is_one_product():
    chain = [("add", 0, 1)] + [("add", k, 1) if k % 2 else ("add", 1, k) for k in range(3, 18)]
    program = numbered(chain, [18])
    plain, made = both(program, x=0.3, d=0.7, e=0.0)
    assert np.allclose(made, 0.3 + 16 * 0.7, rtol=1e-15) and np.allclose(plain, made, rtol=1e-14)  # sums round more
    assert [word for word, *_ in with_products(program).instructions] == ["const", "mul", "add"]


def test_sums_that_are_used_on_the_way_stay_as_they_are():
    """Values 3 to 6: x + d, twice, three times, and three times with e; the second is asked for, the third squared."""
    chain = [("add", 0, 1), ("add", 3, 1), ("add", 4, 1), ("add", 5, 2), ("mul", 5, 5), ("add", 6, 2)]
    program = numbered(chain, [4, 8, 7])
    plain, made = both(program, x=2.0, d=0.25, e=-4.0)
    assert np.array_equal(plain, made) and np.array_equal(made, [2.5, -5.25, 2.75**2])  # exact in powers of two
    assert with_products(program).instructions == program.instructions


def test_random_sums_are_the_same():
    rng = np.random.default_rng(4)
    for _ in range(50):
        made = [("add", 0, 1)]
        while len(made) < 40:
            last, word = len(made) + 2, rng.choice(["add", "add", "add", "add", "mul", "sub"])
            other = int(rng.choice([1, 1, 1, 2, int(rng.integers(0, last + 1))]))
            made.append((str(word), last, other) if rng.random() < 0.7 else (str(word), other, last))
        program = numbered(made, sorted({len(made) + 2, *rng.integers(3, len(made) + 2, 2).tolist()}))
        given = {name: float(x) for name, x in zip("xde", rng.uniform(-0.5, 0.5, 3), strict=True)}
        plain, short = both(program, **given)
        assert np.allclose(plain, short, rtol=1e-9, atol=1e-9)  # differences lose digits
