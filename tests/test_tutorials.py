"""Pages that are followed from top to bottom: files are saved, commands and examples are run, one folder for a page."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PUBLIC
from support.documentation import ROOT, blocks, run_parflex, shows

HERE = Path(__file__).resolve().parent
PAGES = [
    "tutorial.md", "howto-flexible-link.md", "howto-modal-data.md", "howto-controller.md", "howto-study.md",
    "howto-identify.md", "howto-excite.md", "howto-update.md",
]  # fmt: skip


def follow_console(text: str, page: str) -> None:
    """Run the commands of a block and compare what they print."""
    for entry in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, shown = entry.partition("\n")
        line, _, remark = line.partition(" # ")
        code = re.search(r"exit code (\d)", remark)
        program, *arguments = shlex.split(line)
        assert program == "parflex", line
        real_code, output = run_parflex(arguments)
        assert real_code == (int(code[1]) if code else 0), f"{line}\n{output}"
        assert not shown.strip() or shows(shown, output), f"{page}: {line}\nshown:\n{shown}\nreal:\n{output}"


def run_python(text: str, page: str, names: dict[str, object]) -> str:
    """What an example prints; later ones of a page know the names of those before."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(text, page, "exec"), names)
    return output.getvalue()


def run_shell(text: str) -> str:
    """What a script that compiles and runs C prints."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    done = subprocess.run(["sh", "-e"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.few
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed_literally(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    found = blocks(ROOT / "docs" / page)
    assert found
    names: dict[str, object] = {"__name__": "example"}
    for index, (language, text) in enumerate(found):
        name = re.match(r"(?:# |/\* )([\w.-]+\.(?:toml|py|c))(?: \*/)?\n", text)
        if name:
            (tmp_path / name[1]).write_text(text.partition("\n")[2], encoding="utf-8")
        elif language == "console":
            follow_console(text, page)
        elif language == "python" or (language == "sh" and text.startswith("cc ")):
            real = run_python(text, page, names) if language == "python" else run_shell(text)
            following, shown = found[index + 1]
            assert following == "text", "an example is followed by what it prints"
            assert shows(shown, real), f"shown:\n{shown}\nreal:\n{real}"


# -- examples ---------------------------------------------------------------------------------------------------


def has_its_own_test(name: str) -> bool:
    """Whether another file of tests runs an example."""
    return any(name in path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py") if path != Path(__file__))


@pytest.mark.few
@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_every_example_runs_and_stands_in_the_gallery(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert f"`python examples/{name}`" in gallery
    if has_its_own_test(name):
        return
    monkeypatch.setattr("sys.argv", [name, "--output", str(tmp_path), "--short"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    shown = capsys.readouterr()
    assert stop.value.code == 0, shown.err
    assert shown.err == ""
    picture = Path(re.search(r"^Figure: (.*)$", shown.out, flags=re.M)[1])
    assert picture.parent == tmp_path
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_the_robot_of_the_examples_is_that_of_the_tutorial() -> None:
    files = dict(
        re.findall(r"^```toml\n# (\S+)\n(.*?)^```", (ROOT / "docs" / "tutorial.md").read_text(), flags=re.M | re.S)
    )
    assert set(files) == {"crank-slide.toml", "crank-slide-flexible.toml"}
    for name, text in files.items():
        assert (ROOT / "examples" / name).read_text(encoding="utf-8") == text


# -- reference --------------------------------------------------------------------------------------------------


def test_the_reference_has_every_public_function_with_its_arguments() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "hooks" / "api_reference.py"))["on_page_markdown"](
        (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    )
    parts = dict(re.findall(r"^## (\w+)[^\n]*\n(.*?)(?=^## |\Z)", written, flags=re.M | re.S))
    assert set(parts) == {*PUBLIC, "Errors"}
    for name in PUBLIC:
        call, words = parts[name].split("```")[1:3]
        assert f"{name}(" in call
        assert len(words.split()) > 3, f"{name} has no docstring"
        assert "<class" not in parts[name] and " at 0x" not in parts[name]
