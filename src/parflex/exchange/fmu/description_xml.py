"""modelDescription.xml of FMI 2.0 and 3.0: variables with units, and capabilities of the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

Element = ElementTree.Element
BASE = {  # exponents of SI units
    "m": {"m": 1}, "rad": {"rad": 1}, "m/s": {"m": 1, "s": -1}, "rad/s": {"rad": 1, "s": -1}, "m/s2": {"m": 1, "s": -2},
    "rad/s2": {"rad": 1, "s": -2}, "N": {"kg": 1, "m": 1, "s": -2}, "N.m": {"kg": 1, "m": 2, "s": -2}, "s": {"s": 1},
    "J": {"kg": 1, "m": 2, "s": -2}, "W": {"kg": 1, "m": 2, "s": -3}, "Pa": {"kg": 1, "m": -1, "s": -2}, "1": {},
    "kg": {"kg": 1}, "kg.m": {"kg": 1, "m": 1}, "kg.m2": {"kg": 1, "m": 2}, "1/s": {"s": -1}, "1/s2": {"s": -2},
    "N/m": {"kg": 1, "s": -2}, "N.m/rad": {"kg": 1, "m": 2, "s": -2, "rad": -1}, "N.s/m": {"kg": 1, "s": -1},
    "N.m.s/rad": {"kg": 1, "m": 2, "s": -1, "rad": -1},
}  # fmt: skip


@dataclass(frozen=True)
class Variable:
    """A variable of an FMU; its value reference is its place in the list, where it is not given."""

    name: str
    causality: str  # independent, input, output, local or parameter
    unit: str = ""
    start: float | None = None
    derivative: int | None = None  # of which variable it is the derivative
    text: str = ""
    reference: int | None = None


@dataclass(frozen=True)
class ModelDescription:
    """What is said of a model, besides its variables."""

    name: str
    identifier: str
    token: str
    kind: str  # "cs" or "me"
    step: float
    version: str
    text: str
    differentiates: bool = True  # whether model exchange has directional derivatives
    compiled: tuple[str, ...] = ()  # files of C that make its library


def description(about: ModelDescription, variables: Sequence[Variable], fmi: int) -> str:
    """The document."""
    words = {"fmiVersion": "2.0" if fmi == 2 else "3.0", "modelName": about.name, "description": about.text}
    words |= {"guid" if fmi == 2 else "instantiationToken": about.token}
    words |= {"generationTool": f"parflex {about.version}", "variableNamingConvention": "flat"}
    if fmi == 2:
        words["numberOfEventIndicators"] = "0"
    root = Element("fmiModelDescription", words)
    state = "FMUstate" if fmi == 2 else "FMUState"
    able = {"modelIdentifier": about.identifier, f"canGetAndSet{state}": "true", f"canSerialize{state}": "true"}
    if about.kind == "cs":
        able |= {"canHandleVariableCommunicationStepSize": "true"}
        able |= {} if fmi == 2 else {"fixedInternalStepSize": repr(about.step)}
    elif about.differentiates:
        able |= {"providesDirectionalDerivative" + ("" if fmi == 2 else "s"): "true"}
    kind = "CoSimulation" if about.kind == "cs" else "ModelExchange"
    interface = ElementTree.SubElement(root, kind, able)
    if fmi == 2:
        files = ElementTree.SubElement(interface, "SourceFiles")
        for file in about.compiled:
            ElementTree.SubElement(files, "File", name=file)
    _units(root, variables)
    categories = ElementTree.SubElement(root, "LogCategories")
    for word, text in (("logStatusError", "errors"), ("logStatusWarning", "warnings")):
        ElementTree.SubElement(categories, "Category", name=word, description=text)
    ElementTree.SubElement(root, "DefaultExperiment", startTime="0.0", stopTime="1.0", stepSize=repr(about.step))
    listed = ElementTree.SubElement(root, "ModelVariables")
    for number, variable in enumerate(variables):
        (_variable2 if fmi == 2 else _variable3)(listed, number, variable)
    _structure(root, variables, fmi)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def build_description(about: ModelDescription) -> str:
    """How a library is made of the sources inside an FMU 3.0; FMI 2.0 has a list of files in its description."""
    root = Element("fmiBuildDescription", {"fmiVersion": "3.0"})
    configuration = ElementTree.SubElement(root, "BuildConfiguration", modelIdentifier=about.identifier)
    files = ElementTree.SubElement(configuration, "SourceFileSet", language="C99")
    for file in about.compiled:
        ElementTree.SubElement(files, "SourceFile", name=file)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _units(root: Element, variables: Sequence[Variable]) -> None:
    used = [unit for unit in BASE if any(variable.unit == unit for variable in variables)]
    if not used:
        return
    units = ElementTree.SubElement(root, "UnitDefinitions")
    for unit in used:
        entry = ElementTree.SubElement(units, "Unit", name=unit)
        ElementTree.SubElement(entry, "BaseUnit", {base: str(power) for base, power in BASE[unit].items()})


def _shared(number: int, variable: Variable) -> dict[str, str]:
    reference = number if variable.reference is None else variable.reference
    words = {"name": variable.name, "valueReference": str(reference)}
    words |= {"description": variable.text} if variable.text else {}
    fixed = variable.causality == "parameter"
    return words | {"causality": variable.causality, "variability": "fixed" if fixed else "continuous"}


def _initial(variable: Variable) -> dict[str, str]:
    if variable.causality in ("input", "independent"):
        return {}
    return {"initial": "exact" if variable.start is not None else "calculated"}


def _own(variable: Variable, first: int) -> dict[str, str]:
    words = {"unit": variable.unit} if variable.unit in BASE else {}
    words |= {"start": repr(float(variable.start))} if variable.start is not None else {}
    return words | ({"derivative": str(variable.derivative + first)} if variable.derivative is not None else {})


def _variable2(listed: Element, number: int, variable: Variable) -> None:
    entry = ElementTree.SubElement(listed, "ScalarVariable", _shared(number, variable) | _initial(variable))
    ElementTree.SubElement(entry, "Real", _own(variable, 1))


def _variable3(listed: Element, number: int, variable: Variable) -> None:
    words = _shared(number, variable) | _initial(variable) | _own(variable, 0)
    ElementTree.SubElement(listed, "Float64", words)


def _structure(root: Element, variables: Sequence[Variable], fmi: int) -> None:
    """Outputs, derivatives of states, and what is computed at the start."""
    structure = ElementTree.SubElement(root, "ModelStructure")
    outputs = [k for k, variable in enumerate(variables) if variable.causality == "output"]
    slopes = [k for k, variable in enumerate(variables) if variable.derivative is not None]
    if fmi == 2:
        for section, chosen in (("Outputs", outputs), ("Derivatives", slopes), ("InitialUnknowns", outputs + slopes)):
            if chosen:
                entry = ElementTree.SubElement(structure, section)
                for k in chosen:
                    ElementTree.SubElement(entry, "Unknown", index=str(k + 1))
        return
    kinds = (("Output", outputs), ("ContinuousStateDerivative", slopes), ("InitialUnknown", outputs + slopes))
    for word, chosen in kinds:
        for k in chosen:
            ElementTree.SubElement(structure, word, valueReference=str(k))
