"""LLVM IR straight from the program: a kernel for one input and one that takes several at once in SIMD lanes.

Sine, cosine and arctangent are written out in the kernel (Cody-Waite reduction by three parts of pi/2 with fused
multiply-add, then the polynomials of the interval), so that lanes need no library call; good to 2 ulp, sine and cosine
for angles up to 1e5 rad.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from parflex.codegen.emit.workspace import workspace
from parflex.codegen.program import Program

CHUNK = 3000  # instructions of one function: cuts cost stores and loads, longer functions take LLVM minutes
DOUBLE, INT64 = ir.DoubleType(), ir.IntType(64)
CONTRACT = ("contract",)

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


class _Kernel:
    """Emits instructions for one lane width into chunk functions that share a workspace."""

    def __init__(self, module: ir.Module, program: Program, lanes: int) -> None:
        self.module, self.program, self.lanes = module, program, lanes
        self.type = DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)
        self.base = len(program.inputs)

    def constant(self, value: float) -> ir.Constant:
        return ir.Constant(self.type, value if self.lanes == 1 else [value] * self.lanes)

    def intrinsic(self, name: str, arguments: int) -> ir.Function:
        full = f"llvm.{name}.f64" if self.lanes == 1 else f"llvm.{name}.v{self.lanes}f64"
        found = self.module.globals.get(full)
        return found or ir.Function(self.module, ir.FunctionType(self.type, [self.type] * arguments), full)

    def instruction(self, b: ir.IRBuilder, operation: str, a: list[Any]) -> Any:
        match operation:
            case "add":
                return b.fadd(a[0], a[1], flags=CONTRACT)
            case "sub":
                return b.fsub(a[0], a[1], flags=CONTRACT)
            case "mul":
                return b.fmul(a[0], a[1], flags=CONTRACT)
            case "div":
                return b.fdiv(a[0], a[1])
            case "neg":
                return b.fneg(a[0])
            case "sqrt" | "abs":
                return b.call(self.intrinsic("fabs" if operation == "abs" else "sqrt", 1), [a[0]])
            case "greater":
                return b.fcmp_ordered(">", a[0], a[1])
            case "select":
                return b.select(a[0], a[1], a[2])
            case "sign":
                zero, one = self.constant(0.0), self.constant(1.0)
                below = b.select(b.fcmp_ordered("<", a[0], zero), self.constant(-1.0), zero)
                return b.select(b.fcmp_ordered(">", a[0], zero), one, below)
            case "atan2":
                return self.atan2(b, a[0], a[1])
        raise ValueError(operation)

    def polynomial(self, b: ir.IRBuilder, coefficients: tuple[float, ...], z: Any) -> Any:
        """The polynomial by Horner's rule, lowest coefficient first."""
        value = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = b.call(self.intrinsic("fma", 3), [value, z, self.constant(coefficient)])
        return value

    def atan2(self, b: ir.IRBuilder, y: Any, x: Any) -> Any:
        """Angle of the point (x, y): of the smaller over the larger side, turned by pi/4 where that is above pi/8."""
        c, fabs, copysign = self.constant, self.intrinsic("fabs", 1), self.intrinsic("copysign", 2)
        width, height = b.call(fabs, [x]), b.call(fabs, [y])
        steep = b.fcmp_ordered(">", height, width)
        small, large = b.select(steep, width, height), b.select(steep, height, width)
        far = b.fcmp_ordered(">", small, b.fmul(c(TAN_PI_8), large))
        above, below = b.select(far, b.fsub(small, large), small), b.select(far, b.fadd(small, large), large)
        t = b.fdiv(above, b.select(b.fcmp_ordered("==", below, c(0.0)), c(1.0), below))
        z = b.fmul(t, t)
        bent = b.fmul(z, self.polynomial(b, ATAN_POLYNOMIAL, z))
        angle = b.call(self.intrinsic("fma", 3), [b.fneg(bent), t, t])

        def turned(turn: float, value: Any) -> Any:  # turn * pi + value, pi in two parts
            return b.fadd(c(2 * turn * PI_2[0]), b.fadd(c(2 * turn * PI_2[1]), value))

        angle = b.select(far, turned(0.25, angle), angle)
        angle = b.select(steep, turned(0.5, b.fneg(angle)), angle)
        left = b.fcmp_ordered("<", b.call(copysign, [c(1.0), x]), c(0.0))
        angle = b.select(left, turned(1.0, b.fneg(angle)), angle)
        return b.call(copysign, [angle, y])

    def sin_cos(self, b: ir.IRBuilder, x: Any) -> tuple[Any, Any]:
        """Sine and cosine of x."""
        fma = self.intrinsic("fma", 3)
        c = self.constant
        # adding 1.5 2^52 rounds to whole quarter turns and leaves their number in the last bits
        shifted = b.call(fma, [x, c(0.6366197723675814), c(ROUNDING)])
        turns = b.fsub(shifted, c(ROUNDING))
        r = x
        back = b.fneg(turns)
        for part in PI_2:
            r = b.call(fma, [back, c(part), r])
        z = b.fmul(r, r)
        sine, cosine = self.polynomial(b, SIN_POLYNOMIAL, z), self.polynomial(b, COS_POLYNOMIAL, z)
        sine = b.call(fma, [b.fmul(sine, z), r, r])
        cosine = b.call(fma, [b.fmul(cosine, z), z, b.call(fma, [c(-0.5), z, c(1.0)])])
        # quarter turns swap the two and change signs, which are single bits
        integer = INT64 if self.lanes == 1 else ir.VectorType(INT64, self.lanes)
        quarter = b.bitcast(shifted, integer)

        def number(value: int) -> ir.Constant:
            return ir.Constant(integer, value if self.lanes == 1 else [value] * self.lanes)

        def signed(value: Any, bits: Any) -> Any:
            """The value with its sign changed where the second of the bits is set."""
            flip = b.shl(b.and_(bits, number(2)), number(62))
            return b.bitcast(b.xor(b.bitcast(value, integer), flip), self.type)

        odd = b.icmp_signed("!=", b.and_(quarter, number(1)), number(0))
        s, k = b.select(odd, cosine, sine), b.select(odd, sine, cosine)
        return signed(s, quarter), signed(k, b.add(quarter, number(1)))


def build_module(program: Program, widths: Sequence[int]) -> ir.Module:
    """A module with `one(x, y, 1)` for the width 1, and `many(x, y, count)` for a width of several lanes.

    In x and y the values of one input lie `count` apart. `one_in` and `many_in` take a place to work in as their last
    argument, which the others put on the stack.
    """
    module = ir.Module(name="parflex")
    for lanes in widths:
        name = "one" if lanes == 1 else "many"
        _build_kernel(module, program, lanes, "one_in" if lanes == 1 else "lanes")
        if lanes > 1:
            _build_loop(module, lanes)
        _build_on_stack(module, name, work_of(program, lanes))
    return module


def work_of(program: Program, lanes: int) -> int:
    """Doubles of workspace that a kernel needs."""
    return lanes * workspace(program, CHUNK)[1]


POINTER = DOUBLE.as_pointer()
WORKING = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INT64, POINTER])


def _build_kernel(module: ir.Module, program: Program, lanes: int, name: str) -> None:
    kernel = _Kernel(module, program, lanes)
    places, _ = workspace(program, CHUNK)
    chunks = max(-(-len(program.instructions) // CHUNK), 1)
    main = ir.Function(module, WORKING, name)
    if chunks == 1:
        _build_chunk(kernel, main, 0, True, places)
        return
    b = ir.IRBuilder(main.append_basic_block())
    for number in range(chunks):
        part = ir.Function(module, WORKING, f"{name}_{number}")
        part.linkage = "internal"
        part.attributes.add("noinline")
        _build_chunk(kernel, part, number, number == chunks - 1, places)
        b.call(part, main.args)
    b.ret_void()


def _build_on_stack(module: ir.Module, name: str, work: int) -> None:
    """The function without the last argument: what it works in lies on its stack."""
    main = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INT64]), name)
    b = ir.IRBuilder(main.append_basic_block())
    b.call(module.globals[f"{name}_in"], [*main.args, b.alloca(DOUBLE, max(work, 1))])
    b.ret_void()


def _build_chunk(kernel: _Kernel, function: ir.Function, number: int, last: bool, places: dict[int, int]) -> None:
    program, b = kernel.program, ir.IRBuilder(function.append_basic_block())
    x, y, stride, work = function.args
    values: dict[int, Any] = {}
    trig: dict[int, tuple[Any, Any]] = {}

    def address(array: Any, index: int) -> Any:
        offset = b.mul(stride, ir.Constant(INT64, index))
        place = b.gep(array, [offset])
        return place if kernel.lanes == 1 else b.bitcast(place, kernel.type.as_pointer())

    def held(k: int) -> Any:
        """Where a value lies in the workspace."""
        place = b.gep(work, [ir.Constant(INT64, places[k] * kernel.lanes)])
        return place if kernel.lanes == 1 else b.bitcast(place, kernel.type.as_pointer())

    def value(k: int) -> Any:
        if k not in values:
            if k < kernel.base:
                values[k] = b.load(address(x, k), align=8)
            elif program.instructions[k - kernel.base][0] == "const":
                values[k] = kernel.constant(program.instructions[k - kernel.base][1])
            else:
                values[k] = b.load(held(k), align=8)
                if program.instructions[k - kernel.base][0] == "greater":  # a flag lies there as 1.0 or 0.0
                    values[k] = b.fcmp_ordered("!=", values[k], kernel.constant(0.0))
        return values[k]

    for index in range(number * CHUNK, min((number + 1) * CHUNK, len(program.instructions))):
        operation, *arguments = program.instructions[index]
        if operation == "const":
            continue
        k = kernel.base + index
        if operation in ("sin", "cos"):
            if arguments[0] not in trig:
                trig[arguments[0]] = kernel.sin_cos(b, value(arguments[0]))
            values[k] = trig[arguments[0]][operation == "cos"]
        else:
            values[k] = kernel.instruction(b, operation, [value(a) for a in arguments])
        if k in places:  # at once: values that wait for the end of the chunk crowd the registers
            b.store(b.uitofp(values[k], kernel.type) if operation == "greater" else values[k], held(k), align=8)
    if last:
        for place, (_, k) in enumerate(program.outputs):
            b.store(value(k), address(y, place), align=8)
    b.ret_void()


def _build_loop(module: ir.Module, lanes: int) -> None:
    """many_in(x, y, count, work): runs the lane kernel over `count` inputs, a multiple of the lanes."""
    main = ir.Function(module, WORKING, "many_in")
    x, y, count, work = main.args
    entry, body, done = (main.append_basic_block(label) for label in ("entry", "body", "done"))
    b = ir.IRBuilder(entry)
    b.cbranch(b.icmp_signed(">", count, ir.Constant(INT64, 0)), body, done)
    b.position_at_end(body)
    k = b.phi(INT64)
    k.add_incoming(ir.Constant(INT64, 0), entry)
    b.call(module.globals["lanes"], [b.gep(x, [k]), b.gep(y, [k]), count, work])
    following = b.add(k, ir.Constant(INT64, lanes))
    k.add_incoming(following, body)
    b.cbranch(b.icmp_signed("<", following, count), body, done)
    ir.IRBuilder(done).ret_void()
