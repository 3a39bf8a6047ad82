"""modelDescription.xml of FMI 2.0 and 3.0: variables with units, and capabilities of the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

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
    interface = SubElement(root, kind, able)
    if fmi == 2:
        files = SubElement(interface, "SourceFiles")
        for file in about.compiled:
            SubElement(files, "File", name=file)
    _units(root, variables)
    categories = SubElement(root, "LogCategories")
    for word, text in (("logStatusError", "errors"), ("logStatusWarning", "warnings")):
        SubElement(categories, "Category", name=word, description=text)
    SubElement(root, "DefaultExperiment", startTime="0.0", stopTime="1.0", stepSize=repr(about.step))
    listed = SubElement(root, "ModelVariables")
    for number, variable in enumerate(variables):
        _variable(listed, number, variable, fmi)
    _structure(root, variables, fmi)
    return _document(root)


def build_description(about: ModelDescription) -> str:
    """How a library is made of the sources inside an FMU 3.0; FMI 2.0 has a list of files in its description."""
    root = Element("fmiBuildDescription", {"fmiVersion": "3.0"})
    configuration = SubElement(root, "BuildConfiguration", modelIdentifier=about.identifier)
    files = SubElement(configuration, "SourceFileSet", language="C99")
    for file in about.compiled:
        SubElement(files, "SourceFile", name=file)
    return _document(root)


def _document(root: Element) -> str:
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _units(root: Element, variables: Sequence[Variable]) -> None:
    used = [unit for unit in BASE if any(variable.unit == unit for variable in variables)]
    if not used:
        return
    units = SubElement(root, "UnitDefinitions")
    for unit in used:
        entry = SubElement(units, "Unit", name=unit)
        SubElement(entry, "BaseUnit", {base: str(power) for base, power in BASE[unit].items()})


def _variable(listed: Element, number: int, variable: Variable, fmi: int) -> None:
    stated, causality = variable.start is not None, variable.causality
    words = {"name": variable.name, "valueReference": str(number if variable.reference is None else variable.reference)}
    words |= {"description": variable.text} if variable.text else {}
    words |= {"causality": causality, "variability": "fixed" if causality == "parameter" else "continuous"}
    words |= {} if causality in ("input", "independent") else {"initial": "exact" if stated else "calculated"}
    real = {"unit": variable.unit} if variable.unit in BASE else {}
    real |= {"start": repr(float(variable.start))} if variable.start is not None else {}
    real |= {} if variable.derivative is None else {"derivative": str(variable.derivative + (fmi == 2))}
    if fmi == 2:
        SubElement(SubElement(listed, "ScalarVariable", words), "Real", real)
    else:
        SubElement(listed, "Float64", words | real)


def _structure(root: Element, variables: Sequence[Variable], fmi: int) -> None:
    """Outputs, derivatives of states, and what is computed at the start."""
    structure = SubElement(root, "ModelStructure")
    outputs = [k for k, variable in enumerate(variables) if variable.causality == "output"]
    slopes = [k for k, variable in enumerate(variables) if variable.derivative is not None]
    unknowns = outputs + slopes
    if fmi == 2:
        for word, chosen in (("Outputs", outputs), ("Derivatives", slopes), ("InitialUnknowns", unknowns)):
            entry = SubElement(structure, word) if chosen else structure
            for k in chosen:
                SubElement(entry, "Unknown", index=str(k + 1))
        return
    for word, chosen in (("Output", outputs), ("ContinuousStateDerivative", slopes), ("InitialUnknown", unknowns)):
        for k in chosen:
            SubElement(structure, word, valueReference=str(k))
