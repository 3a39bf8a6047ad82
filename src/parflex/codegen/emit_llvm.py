"""LLVM IR straight from the program: a kernel for one input and one that takes several at once in SIMD lanes.

Sine and cosine are written out in the kernel (Cody-Waite reduction by three parts of pi/2 with fused multiply-add,
then the polynomials of the interval), so that lanes need no library call; good to 2 ulp for angles up to 1e5 rad.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from parflex.codegen.program import Program

CHUNK = 500
DOUBLE, INT64, INT1 = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
CONTRACT = ("contract",)

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


class _Kernel:
    """Emits instructions for one lane width into chunk functions that share a workspace."""

    def __init__(self, module: ir.Module, program: Program, lanes: int) -> None:
        self.module, self.program, self.lanes = module, program, lanes
        self.type = DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)
        self.flag = INT1 if lanes == 1 else ir.VectorType(INT1, lanes)
        self.base = len(program.inputs)
        self.trig: dict[int, tuple[Any, Any]] = {}

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
        raise ValueError(operation)

    def sin_cos(self, b: ir.IRBuilder, x: Any) -> tuple[Any, Any]:
        """Sine and cosine of x."""
        fma, rint = self.intrinsic("fma", 3), self.intrinsic("rint", 1)
        c = self.constant
        turns = b.call(rint, [b.fmul(x, c(0.6366197723675814))])
        r = x
        back = b.fneg(turns)
        for part in PI_2:
            r = b.call(fma, [back, c(part), r])
        z = b.fmul(r, r)
        sine, cosine = c(SIN_POLYNOMIAL[-1]), c(COS_POLYNOMIAL[-1])
        for coefficient in reversed(SIN_POLYNOMIAL[:-1]):
            sine = b.call(fma, [sine, z, c(coefficient)])
        for coefficient in reversed(COS_POLYNOMIAL[:-1]):
            cosine = b.call(fma, [cosine, z, c(coefficient)])
        sine = b.call(fma, [b.fmul(sine, z), r, r])
        cosine = b.call(fma, [b.fmul(cosine, z), z, b.call(fma, [c(-0.5), z, c(1.0)])])
        # quarter turns swap and change signs
        integer = INT64 if self.lanes == 1 else ir.VectorType(INT64, self.lanes)
        quarter = b.fptosi(turns, integer)

        def number(value: int) -> ir.Constant:
            return ir.Constant(integer, value if self.lanes == 1 else [value] * self.lanes)

        odd = b.icmp_signed("!=", b.and_(quarter, number(1)), number(0))
        s, k = b.select(odd, cosine, sine), b.select(odd, sine, cosine)
        minus_s = b.icmp_signed("!=", b.and_(quarter, number(2)), number(0))
        minus_c = b.icmp_signed("!=", b.and_(b.add(quarter, number(1)), number(2)), number(0))
        return b.select(minus_s, b.fneg(s), s), b.select(minus_c, b.fneg(k), k)


def _crossing(program: Program) -> dict[int, int]:
    """Values that are used in another chunk than their own, and their place in the workspace."""
    base = len(program.inputs)
    handed: dict[int, int] = {}
    last = max(len(program.instructions) - 1, 0) // CHUNK
    users = [
        (index // CHUNK, arguments) for index, (op, *arguments) in enumerate(program.instructions) if op != "const"
    ]
    users.append((last, [k for _, k in program.outputs]))
    for chunk, arguments in users:
        for k in arguments:
            if k >= base and program.instructions[k - base][0] != "const" and (k - base) // CHUNK != chunk:
                handed.setdefault(k, len(handed))
    return handed


def build_module(program: Program, lanes: int) -> ir.Module:
    """A module with `one(x, y, 1)` and `many(x, y, count)`; in x and y the values of one input lie `count` apart."""
    module = ir.Module(name="parflex")
    _build_kernel(module, program, 1, "one")
    _build_kernel(module, program, lanes, "lanes")
    _build_loop(module, lanes)
    return module


def _build_kernel(module: ir.Module, program: Program, lanes: int, name: str) -> None:
    kernel = _Kernel(module, program, lanes)
    pointer = kernel.type.as_pointer()
    handed = _crossing(program)
    chunks = max(-(-len(program.instructions) // CHUNK), 1)
    kind = ir.FunctionType(ir.VoidType(), [DOUBLE.as_pointer(), DOUBLE.as_pointer(), INT64, pointer])
    parts = []
    for number in range(chunks):
        function = ir.Function(module, kind, f"{name}_{number}")
        function.linkage = "internal"
        if chunks > 1:
            function.attributes.add("noinline")
        _build_chunk(kernel, function, number, number == chunks - 1, handed)
        parts.append(function)
    main = ir.Function(module, ir.FunctionType(ir.VoidType(), [DOUBLE.as_pointer(), DOUBLE.as_pointer(), INT64]), name)
    b = ir.IRBuilder(main.append_basic_block())
    work = b.alloca(kernel.type, max(len(handed), 1))
    for function in parts:
        b.call(function, [*main.args, work])
    b.ret_void()


def _build_chunk(kernel: _Kernel, function: ir.Function, number: int, last: bool, handed: dict[int, int]) -> None:
    program, b = kernel.program, ir.IRBuilder(function.append_basic_block())
    x, y, stride, work = function.args
    values: dict[int, Any] = {}
    trig: dict[int, tuple[Any, Any]] = {}

    def address(array: Any, index: int) -> Any:
        offset = b.mul(stride, ir.Constant(INT64, index))
        place = b.gep(array, [offset])
        return place if kernel.lanes == 1 else b.bitcast(place, kernel.type.as_pointer())

    def value(k: int) -> Any:
        if k not in values:
            if k < kernel.base:
                values[k] = b.load(address(x, k), align=8)
            elif program.instructions[k - kernel.base][0] == "const":
                values[k] = kernel.constant(program.instructions[k - kernel.base][1])
            else:
                values[k] = b.load(b.gep(work, [ir.Constant(INT64, handed[k])]))
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
        if k in handed:
            b.store(values[k], b.gep(work, [ir.Constant(INT64, handed[k])]))
    if last:
        for place, (_, k) in enumerate(program.outputs):
            b.store(value(k), address(y, place), align=8)
    b.ret_void()


def _build_loop(module: ir.Module, lanes: int) -> None:
    """many(x, y, count): runs the lane kernel over `count` inputs, a multiple of the lanes."""
    pointer = DOUBLE.as_pointer()
    main = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer, INT64]), "many")
    x, y, count = main.args
    entry, body, done = (main.append_basic_block(label) for label in ("entry", "body", "done"))
    b = ir.IRBuilder(entry)
    b.cbranch(b.icmp_signed(">", count, ir.Constant(INT64, 0)), body, done)
    b.position_at_end(body)
    k = b.phi(INT64)
    k.add_incoming(ir.Constant(INT64, 0), entry)
    b.call(module.globals["lanes"], [b.gep(x, [k]), b.gep(y, [k]), count])
    following = b.add(k, ir.Constant(INT64, lanes))
    k.add_incoming(following, body)
    b.cbranch(b.icmp_signed("<", following, count), body, done)
    ir.IRBuilder(done).ret_void()
