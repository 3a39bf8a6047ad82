"""Sine, cosine and arctangent written out in the kernel, so that lanes need no library call.

Cody-Waite reduction by three parts of pi/2 with fused multiply-add, then the polynomials of the interval; good to 2
ulp, sine and cosine for angles up to 1e5 rad.
"""

from __future__ import annotations

from parflex.codegen.emit.llvm_lines import Lines

ROUNDING = 1.5 * 2.0**52  # a double of this size has no bits behind the point
# pi/2 in three parts, each the rounded rest of the one before
PI_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
SIN_POLYNOMIAL = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COS_POLYNOMIAL = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
ATAN_POLYNOMIAL = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
TAN_PI_8 = 0.41421356237309503


def polynomial(b: Lines, coefficients: tuple[float, ...], z: str) -> str:
    """The polynomial by Horner's rule, lowest coefficient first."""
    value = b.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = b.intrinsic("fma", value, z, b.constant(coefficient))
    return value


def atan2(b: Lines, y: str, x: str) -> str:
    """Angle of the point (x, y): of the smaller over the larger side, turned by pi/4 where that is above pi/8."""
    c = b.constant
    width, height = b.intrinsic("fabs", x), b.intrinsic("fabs", y)
    steep = b.compare("ogt", height, width)
    small, large = b.select(steep, width, height), b.select(steep, height, width)
    far = b.compare("ogt", small, b.fmul(c(TAN_PI_8), large))
    above, below = b.select(far, b.fsub(small, large), small), b.select(far, b.fadd(small, large), large)
    t = b.fdiv(above, b.select(b.compare("oeq", below, c(0.0)), c(1.0), below))
    z = b.fmul(t, t)
    bent = b.fmul(z, polynomial(b, ATAN_POLYNOMIAL, z))
    angle = b.intrinsic("fma", b.fneg(bent), t, t)

    def turned(turn: float, value: str) -> str:  # turn * pi + value, pi in two parts
        return b.fadd(c(2 * turn * PI_2[0]), b.fadd(c(2 * turn * PI_2[1]), value))

    angle = b.select(far, turned(0.25, angle), angle)
    angle = b.select(steep, turned(0.5, b.fneg(angle)), angle)
    left = b.compare("olt", b.intrinsic("copysign", c(1.0), x), c(0.0))
    angle = b.select(left, turned(1.0, b.fneg(angle)), angle)
    return b.intrinsic("copysign", angle, y)


def sin_cos(b: Lines, x: str) -> tuple[str, str]:
    """Sine and cosine of x."""
    c = b.constant
    # adding 1.5 2^52 rounds to whole quarter turns and leaves their number in the last bits
    shifted = b.intrinsic("fma", x, c(0.6366197723675814), c(ROUNDING))
    turns = b.fsub(shifted, c(ROUNDING))
    r = x
    back = b.fneg(turns)
    for part in PI_2:
        r = b.intrinsic("fma", back, c(part), r)
    z = b.fmul(r, r)
    sine, cosine = polynomial(b, SIN_POLYNOMIAL, z), polynomial(b, COS_POLYNOMIAL, z)
    sine = b.intrinsic("fma", b.fmul(sine, z), r, r)
    cosine = b.intrinsic("fma", b.fmul(cosine, z), z, b.intrinsic("fma", c(-0.5), z, c(1.0)))
    # quarter turns swap the two and change signs, which are single bits
    quarter = b.cast(shifted, b.real, b.integer)

    def signed(value: str, bits: str) -> str:
        """The value with its sign changed where the second of the bits is set."""
        flip = b.whole("shl", b.whole("and", bits, b.number(2)), b.number(62))
        return b.cast(b.whole("xor", b.cast(value, b.real, b.integer), flip), b.integer, b.real)

    odd = b.whole("icmp ne", b.whole("and", quarter, b.number(1)), b.number(0))
    s, k = b.select(odd, cosine, sine), b.select(odd, sine, cosine)
    return signed(s, quarter), signed(k, b.whole("add", quarter, b.number(1)))
