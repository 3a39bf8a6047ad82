"""Lines of LLVM: one method for each instruction, for one value or for several lanes of it.

Text, since objects for every instruction take ten times as long to make and to print.
"""

from __future__ import annotations

from struct import pack

from llvmlite import ir

# the text of a pointer is that of the installed LLVM: younger ones know one kind of pointer alone
POINTER = str(ir.DoubleType().as_pointer())
# a loop of our own: names of LLVM's functions that copy depend on its version
COPY = """define internal void @copy_{lanes}({array} %to, {array} %from, i64 %count) {{
entry:
  br label %body
body:
  %k = phi i64 [ 0, %entry ], [ %following, %body ]
  %a = getelementptr double, {array} %from, i64 %k
  %b = getelementptr double, {array} %to, i64 %k
  %from_here = bitcast {array} %a to {pointer}
  %to_here = bitcast {array} %b to {pointer}
  %x = load {kind}, {pointer} %from_here, align 8
  store {kind} %x, {pointer} %to_here, align 8
  %following = add i64 %k, {lanes}
  %more = icmp slt i64 %following, %count
  br i1 %more, label %body, label %done
done:
  ret void
}}"""


class Lines:
    """Lines of LLVM of one lane width; a method writes an instruction and gives back the name of its value."""

    def __init__(self, lanes: int, declared: set[str]) -> None:
        self.lanes, self.declared = lanes, declared
        self.real, self.flag, self.integer = (
            kind if lanes == 1 else f"<{lanes} x {kind}>" for kind in ("double", "i1", "i64")
        )
        self.lines: list[str] = []

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

    def fadd(self, a: str, b: str) -> str:
        """Sum."""
        return self.new(f"fadd {self.real} {a}, {b}")

    def fsub(self, a: str, b: str) -> str:
        """Difference."""
        return self.new(f"fsub {self.real} {a}, {b}")

    def fmul(self, a: str, b: str) -> str:
        """Product."""
        return self.new(f"fmul {self.real} {a}, {b}")

    def fdiv(self, a: str, b: str) -> str:
        """Quotient."""
        return self.new(f"fdiv {self.real} {a}, {b}")

    def fneg(self, a: str) -> str:
        """Negative."""
        return self.new(f"fneg {self.real} {a}")

    def compare(self, how: str, a: str, b: str) -> str:
        """A flag, e.g. `ogt` for a > b."""
        return self.new(f"fcmp {how} {self.real} {a}, {b}")

    def select(self, flag: str, a: str, b: str) -> str:
        """A where the flag is set, else b."""
        return self.new(f"select {self.flag} {flag}, {self.real} {a}, {self.real} {b}")

    def whole(self, operation: str, a: str, b: str) -> str:
        """An operation on integers."""
        return self.new(f"{operation} {self.integer} {a}, {b}")

    def cast(self, a: str, source: str, target: str) -> str:
        """The same bits as another type."""
        return self.new(f"bitcast {source} {a} to {target}")

    def address(self, array: str, offset: str) -> tuple[str, str]:
        """The type of a pointer to values, and the place that lies `offset` doubles behind the start of an array."""
        place = self.new(f"getelementptr double, {POINTER} {array}, i64 {offset}")
        if self.lanes == 1 or POINTER == "ptr":
            return POINTER, place
        return f"{self.real}*", self.cast(place, POINTER, f"{self.real}*")

    def load(self, array: str, offset: str) -> str:
        """The values at a place of an array."""
        pointer, place = self.address(array, offset)
        return self.new(f"load {self.real}, {pointer} {place}, align 8")

    def store(self, value: str, array: str, offset: str) -> None:
        """Write values to a place of an array."""
        pointer, place = self.address(array, offset)
        self.lines.append(f"  store {self.real} {value}, {pointer} {place}, align 8")

    def second_row(self, array: str, size: int) -> str:
        """Where the numbers of the second lane begin, `%count` rows of this size behind the first."""
        return self.new(f"getelementptr double, {POINTER} {array}, i64 {self.new(f'mul i64 %count, {size}')}")

    def load_both(self, first: str, second: str, offset: int) -> str:
        """Two lanes from one place of two arrays."""
        both = "undef"
        for lane, array in enumerate((first, second)):
            place = self.new(f"getelementptr double, {POINTER} {array}, i64 {offset}")
            one = self.new(f"load double, {POINTER} {place}, align 8")
            both = self.new(f"insertelement {self.real} {both}, double {one}, i32 {lane}")
        return both

    def store_both(self, value: str, first: str, second: str, offset: int) -> None:
        """Write two lanes to one place of two arrays."""
        for lane, array in enumerate((first, second)):
            place = self.new(f"getelementptr double, {POINTER} {array}, i64 {offset}")
            one = self.new(f"extractelement {self.real} {value}, i32 {lane}")
            self.lines.append(f"  store double {one}, {POINTER} {place}, align 8")

    def copy(self, to: str, at: str, source: str, first: str, count: int) -> None:
        """Copy values that lie side by side from one array to another; offsets in doubles."""
        pointer = POINTER if POINTER == "ptr" else f"{self.real}*"
        self.declared.add(COPY.format(lanes=self.lanes, array=POINTER, pointer=pointer, kind=self.real))
        target, begin = (
            self.new(f"getelementptr double, {POINTER} {array}, i64 {offset}")
            for array, offset in ((to, at), (source, first))
        )
        self.call(f"copy_{self.lanes}", f"{POINTER} {target}, {POINTER} {begin}, i64 {count * self.lanes}")

    def call(self, function: str, arguments: str) -> None:
        """Call a function without a value."""
        self.lines.append(f"  call void @{function}({arguments})")
