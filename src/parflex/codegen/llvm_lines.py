"""LLVM instructions for one value or several lanes, and trigonometric functions.

A method writes each instruction as text, because instruction objects take ten times as long to make and to print.

Sine, cosine and arctangent are part of the kernel, so lanes need no library call: Cody-Waite reduction by three parts
of pi/2 with fused multiply-add, then the polynomials of the interval; errors below 2 ulp, sine and cosine for angles up
to 1e5 rad.
"""

from __future__ import annotations

from struct import pack

# a loop of our own, so that kernels call no library
COPY = """define internal void @copy_{lanes}(ptr %to, ptr %from, i64 %count) {{
entry:
  br label %body
body:
  %k = phi i64 [ 0, %entry ], [ %following, %body ]
  %a = getelementptr double, ptr %from, i64 %k
  %b = getelementptr double, ptr %to, i64 %k
  %x = load {kind}, ptr %a, align 8
  store {kind} %x, ptr %b, align 8
  %following = add i64 %k, {lanes}
  %more = icmp slt i64 %following, %count
  br i1 %more, label %body, label %done
done:
  ret void
}}"""
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


class Lines:
    """Lines of LLVM of one lane width; a method writes an instruction and gives back the name of its value."""

    def __init__(self, lanes: int, declared: set[str]) -> None:
        self.lanes, self.declared = lanes, declared
        self.real, self.flag, self.integer = (
            kind if lanes == 1 else f"<{lanes} x {kind}>" for kind in ("double", "i1", "i64")
        )
        self.lines: list[str] = []
        self._places: dict[tuple[str, str], str] = {}

    def new(self, text: str) -> str:
        """An instruction with a value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def spread(self, kind: str, text: str) -> str:
        """The same in all lanes."""
        return text if self.lanes == 1 else f"<{', '.join([f'{kind} {text}'] * self.lanes)}>"

    def constant(self, value: float) -> str:
        """A double."""
        return self.spread("double", f"0x{pack('>d', value).hex().upper()}")

    def number(self, value: int) -> str:
        """An integer."""
        return self.spread("i64", str(value))

    def intrinsic(self, name: str, *arguments: str) -> str:
        """A function that LLVM knows."""
        full = f"@llvm.{name}.{'f64' if self.lanes == 1 else f'v{self.lanes}f64'}"
        self.declared.add(f"declare {self.real} {full}({', '.join([self.real] * len(arguments))})")
        return self.new(f"call {self.real} {full}({', '.join(f'{self.real} {x}' for x in arguments)})")

    def real_op(self, operation: str, a: str, b: str) -> str:
        """An operation on doubles, e.g. `fadd`, or a comparison, e.g. `fcmp ogt`."""
        return self.new(f"{operation} {self.real} {a}, {b}")

    def fneg(self, a: str) -> str:
        """Negative."""
        return self.new(f"fneg {self.real} {a}")

    def select(self, flag: str, a: str, b: str) -> str:
        """A where the flag is set, else b."""
        return self.new(f"select {self.flag} {flag}, {self.real} {a}, {self.real} {b}")

    def whole_op(self, operation: str, a: str, b: str) -> str:
        """An operation on integers."""
        return self.new(f"{operation} {self.integer} {a}, {b}")

    def cast(self, a: str, source: str, target: str) -> str:
        """The same bits as another type."""
        return self.new(f"bitcast {source} {a} to {target}")

    def address(self, array: str, offset: str) -> str:
        """The place that lies `offset` doubles behind the start of an array; lines without branches write it once."""
        place = self._places.get((array, offset))
        if place is None:
            place = self._places[array, offset] = self.new(f"getelementptr double, ptr {array}, i64 {offset}")
        return place

    def load(self, array: str, offset: str) -> str:
        """The values at a place of an array."""
        return self.new(f"load {self.real}, ptr {self.address(array, offset)}, align 8")

    def store(self, value: str, array: str, offset: str) -> None:
        """Write values to a place of an array."""
        place = self.address(array, offset)
        self.lines.append(f"  store {self.real} {value}, ptr {place}, align 8")

    def second_row(self, array: str, size: int) -> str:
        """Where the numbers of the second lane begin, `%count` rows of this size behind the first."""
        return self.address(array, self.new(f"mul i64 %count, {size}"))

    def load_both(self, first: str, second: str, offset: int) -> str:
        """Two lanes from one place of two arrays."""
        both = "undef"
        for lane, array in enumerate((first, second)):
            element = self.new(f"load double, ptr {self.address(array, str(offset))}, align 8")
            both = self.new(f"insertelement {self.real} {both}, double {element}, i32 {lane}")
        return both

    def store_both(self, value: str, first: str, second: str, offset: int) -> None:
        """Write two lanes to one place of two arrays."""
        for lane, array in enumerate((first, second)):
            place = self.address(array, str(offset))
            element = self.new(f"extractelement {self.real} {value}, i32 {lane}")
            self.lines.append(f"  store double {element}, ptr {place}, align 8")

    def copy(self, to: str, to_offset: str, source: str, source_offset: str, count: int) -> None:
        """Copy values that lie side by side from one array to another; offsets in doubles."""
        self.declared.add(COPY.format(lanes=self.lanes, kind=self.real))
        target, begin = self.address(to, to_offset), self.address(source, source_offset)
        self.call(f"@copy_{self.lanes}", f"ptr {target}, ptr {begin}, i64 {count * self.lanes}")

    def call(self, function: str, arguments: str) -> None:
        """Call a function without a value."""
        self.lines.append(f"  call void {function}({arguments})")


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
    steep = b.real_op("fcmp ogt", height, width)
    small, large = b.select(steep, width, height), b.select(steep, height, width)
    above_pi_8 = b.real_op("fcmp ogt", small, b.real_op("fmul", c(TAN_PI_8), large))
    above, below = (
        b.select(above_pi_8, b.real_op("fsub", small, large), small),
        b.select(above_pi_8, b.real_op("fadd", small, large), large),
    )
    t = b.real_op("fdiv", above, b.select(b.real_op("fcmp oeq", below, c(0.0)), c(1.0), below))
    z = b.real_op("fmul", t, t)
    correction = b.real_op("fmul", z, polynomial(b, ATAN_POLYNOMIAL, z))
    angle = b.intrinsic("fma", b.fneg(correction), t, t)

    def turned(turn: float, value: str) -> str:  # turn * pi + value, pi in two parts
        return b.real_op("fadd", c(2 * turn * PI_2[0]), b.real_op("fadd", c(2 * turn * PI_2[1]), value))

    angle = b.select(above_pi_8, turned(0.25, angle), angle)
    angle = b.select(steep, turned(0.5, b.fneg(angle)), angle)
    left = b.real_op("fcmp olt", b.intrinsic("copysign", c(1.0), x), c(0.0))
    angle = b.select(left, turned(1.0, b.fneg(angle)), angle)
    return b.intrinsic("copysign", angle, y)


def sin_cos(b: Lines, x: str) -> tuple[str, str]:
    """Sine and cosine of x."""
    c = b.constant
    # adding 1.5 2^52 rounds to whole quarter turns and leaves their number in the last bits
    shifted = b.intrinsic("fma", x, c(0.6366197723675814), c(ROUNDING))
    quarter_turns = b.real_op("fsub", shifted, c(ROUNDING))
    r = x
    back = b.fneg(quarter_turns)
    for part in PI_2:
        r = b.intrinsic("fma", back, c(part), r)
    z = b.real_op("fmul", r, r)
    sine, cosine = polynomial(b, SIN_POLYNOMIAL, z), polynomial(b, COS_POLYNOMIAL, z)
    sine = b.intrinsic("fma", b.real_op("fmul", sine, z), r, r)
    cosine = b.intrinsic("fma", b.real_op("fmul", cosine, z), z, b.intrinsic("fma", c(-0.5), z, c(1.0)))
    # quarter turns swap the two and change signs, which are single bits
    quarter = b.cast(shifted, b.real, b.integer)

    def signed(value: str, bits: str) -> str:
        """The value with its sign changed where the second of the bits is set."""
        flip = b.whole_op("shl", b.whole_op("and", bits, b.number(2)), b.number(62))
        return b.cast(b.whole_op("xor", b.cast(value, b.real, b.integer), flip), b.integer, b.real)

    odd = b.whole_op("icmp ne", b.whole_op("and", quarter, b.number(1)), b.number(0))
    s, k = b.select(odd, cosine, sine), b.select(odd, sine, cosine)
    return signed(s, quarter), signed(k, b.whole_op("add", quarter, b.number(1)))
