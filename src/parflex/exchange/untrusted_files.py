"""Safe reading of untrusted files: limits on sizes and depths, no entity expansion, no path out of the folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from xml.etree import ElementTree
from xml.parsers import expat

from parflex.checks import short_text
from parflex.errors import InputError
from parflex.io import read_bytes

Element = ElementTree.Element
MAX_TEXT = 20_000_000  # bytes of a file of text
MAX_DEPTH = 200  # of elements within elements: long chains of bodies in MuJoCo's files are nested
MAX_ELEMENTS = 200_000
MESH_FORMATS = (".stl", ".obj", ".msh")  # that viewers read
NO_MESH, OTHER_MESH = "there is no such file beside this one", "viewers show STL, OBJ and MSH: convert it to STL or OBJ"
PACKAGES = 3  # folders above a file in which its package is looked for


class _RefusedError(Exception):
    """A document that is left unread, and why."""


def file_error(message: str, file: str | Path, key: str, value: object = None, hint: str = "") -> InputError:
    """What is wrong with a file of others."""
    shown = None if value is None else short_text(value)
    return InputError(message, file=str(file), key=key, value=shown, hint=hint or "correct the file")


def read_content(file: str | Path, key: str) -> bytes:
    """The bytes of a file that is not empty."""
    content = read_bytes(file, key, most=MAX_TEXT)
    if not content.strip():
        raise file_error("is empty", file, key, file, "check that this is the right file")
    return content


def read_text(file: str | Path, key: str = "file") -> str:
    """The text of a file in UTF-8."""
    content = read_content(file, key)
    if b"\0" in content:
        raise file_error("is binary, not a text file", file, key, file, "check that this is the right file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start})"
        raise file_error(message, file, key, file, "save it with the encoding UTF-8") from None


def read_xml(file: str | Path, key: str = "file") -> Element:
    """The root of an XML document; each element knows its line."""
    content = read_content(file, key)
    reader = _Reader()
    try:
        reader.parser.Parse(content, True)
    except _RefusedError as error:
        message = f"{error} (line {reader.parser.CurrentLineNumber})"
        raise file_error(message, file, key, file, "remove it: a robot needs none") from None
    except expat.ExpatError as error:
        message = f"is not whole XML (line {error.lineno}: {expat.ErrorString(error.code)})"
        raise file_error(message, file, key, file, "is the file cut off? correct the line") from None
    except (LookupError, ValueError) as error:  # an encoding that is not known
        raise file_error(f"is not XML ({error})", file, key, file, "save it with the encoding UTF-8") from None
    assert reader.root is not None  # expat refuses a document without one
    return reader.root


class _Reader:
    """Elements as they come; document types and entities are refused before anything of them is used."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0

    def _doctype(self, *_: object) -> None:
        raise _RefusedError("has a document type, which may name entities and other files")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if len(self.open) >= MAX_DEPTH or self.count > MAX_ELEMENTS:
            what = "is nested too deeply" if len(self.open) >= MAX_DEPTH else "has too many elements"
            raise _RefusedError(what)
        element = Element(tag, attributes)
        element.tail = str(self.parser.CurrentLineNumber)  # nothing else needs the text between elements
        if self.open:
            self.open[-1].append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, _: str) -> None:
        self.open.pop()


def line_of(element: Element) -> int:
    """Where an element stands in its file."""
    return int(element.tail or 0)


def path_inside(folder: Path, name: str, file: str | Path, key: str) -> Path:
    """A file that another one names, which must stand in the folder of the first or below it."""
    if not name.strip() or "\0" in name or "://" in name:
        message = f"'{short_text(name)}' is not a file name"
        raise file_error(message, file, key, name, "name a file in the folder of this one")
    path = (folder / name.replace("\\", "/")).resolve()
    if not path.is_relative_to(folder.resolve()):
        message = f"'{short_text(name)}' is outside the folder of the file"
        raise file_error(message, file, key, name, "copy it into that folder and name it from there")
    return path


def mesh_path(file: Path, name: str) -> Path | None:
    """The mesh that a file names, in its folder or in that of its package; None where there is none.

    `package://NAME/...` is looked for in the folder NAME that the file is in, or that is beside one of those.
    """
    scheme, _, rest = name.replace("\\", "/").rpartition("://")
    if not rest.strip() or "\0" in rest or ".." in PurePosixPath(rest).parts or scheme not in ("", "package", "model"):
        return None
    folder = file.resolve().parent
    package, _, inner = rest.partition("/") if scheme else ("", "", rest)
    if not package:  # as programs write it that put all into one folder
        here = (folder / inner).resolve()
        return here if here.is_relative_to(folder) and here.is_file() else None
    for above in (folder, *folder.parents[:PACKAGES]):
        for root in (above, above / package):
            path = (root / inner).resolve()
            if root.name == package and path.is_relative_to(root) and path.is_file():
                return path
    return None
