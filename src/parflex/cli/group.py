"""The group of all commands, and the decorator that makes a command from the signature of a function.

Positional parameters are arguments and keyword-only ones are options; `**options` are the other arguments of the
public function that the decorator names. Metavar, help and reader of an option stand in `vocabulary`; its type, its
default and whether it is required follow from the signature. `robot` is loaded before the function runs; `case` and
`choice` stand for several options at once.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from parflex import __version__
from parflex.api import WORDS
from parflex.cli import output
from parflex.cli.vocabulary import CASE, LOAD, OBJECTS, Option, load_case, open_robot, option_of
from parflex.errors import nearest
from parflex.io import refuse_overwrite

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
OUTPUTS = {"--out", "--record", "--page", "--report", "--figure", "--convergence"}  # options that name what is written
GROUPS = {"robot": LOAD, "case": CASE, "choice": ()}
TASKS = ("model", "dynamics", "vibration", "time", "studies", "files")
EXAMPLES = """
\b
Examples:
  parflex list
  parflex info gough-stewart
  parflex inverse gough-stewart --pose z=1.1,rz=0.1 --acceleration z=2 --json
  parflex direct 3rrr --pose home --effort leg1.1=2,leg2.1=-1
  parflex explain dualemps
  parflex frequencies navaro --pose pose-3
  parflex simulate dualemps --motion square --time 2 --out run.csv
  parflex draw delta -o delta.svg

\b
Exit codes: 0 done; 1 diverged, interrupted or a check not passed; 2 bad input, or an unreachable or singular pose.
NO_COLOR switches colours off, PARFLEX_CACHE names the directory of compiled models,
'parflex completion bash' prints a script that completes commands and robots.
"""


def _keyword(default: Any, kind: str) -> inspect.Parameter:
    return inspect.Parameter("word", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


# options that the signature of a command does not name
UNNAMED = {"": _keyword(None, "str"), "elements": _keyword(None, "int"), "lock": _keyword("actuators", "str")}
UNNAMED |= dict.fromkeys(("rigid", "as_json"), _keyword(False, "bool"))


class Command(click.Command):
    """A command that calls a function with the values of its options, and refuses to write over a file that it reads.

    Its parameters are made when it is used: signatures of public functions need NumPy, and the help of all commands
    starts without it.
    """

    def __init__(
        self, name: str, task: str, function: Callable[..., Any], of: str, omit: Sequence[str], **words: Any
    ) -> None:
        super().__init__(name, callback=self._run, help=inspect.getdoc(function), **words)
        self.task, self.function, self.of, self.omit = task, function, of, {*omit}
        del self.params

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """Arguments and options."""
        return [*_parameters(str(self.name), self.arguments)]

    @cached_property
    def arguments(self) -> dict[str, inspect.Parameter]:
        """Parameters of the function, with those of the public function in place of `**options`."""
        names = dict(inspect.signature(self.function).parameters)
        if self.of:
            del names["options"]
            taken = {*names, *self.omit, *(CASE if "case" in names else ())}
            public = inspect.signature(pkgutil.resolve_name(self.of if ":" in self.of else f"parflex:{self.of}"))
            for name, parameter in public.parameters.items():
                if name not in taken and WORDS[name].kind not in OBJECTS:
                    names[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return names

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        option_values = {parameter.name: _words(ctx.params.get(parameter.name or "")) for parameter in self.params}
        outputs = {
            parameter.name: (OUTPUTS & {*parameter.opts}).pop()[2:]
            for parameter in self.params
            if OUTPUTS & {*parameter.opts}
        }
        if any(option_values[name] for name in outputs):
            from parflex.robotfile.read import files_of  # help starts without it

            words = [
                word for name in option_values if name not in outputs for word in option_values[name] if _is_file(word)
            ]
            inputs = [*words, *(file for word in words if word.endswith(".toml") for file in files_of(word))]
            for name, key in outputs.items():
                refuse_overwrite(option_values[name], inputs, key)
        return super().invoke(ctx)

    def _run(self, **values: Any) -> int:
        """Read the values of a command line, load the robot, call the function and print its answer."""
        names, as_json = self.arguments, values["as_json"]
        given = {name: _read(str(self.name), name, value, names.get(name)) for name, value in values.items()}
        arguments = {name: given[name] for name in names if name in given}
        if "case" in names:
            arguments["case"] = load_case({name: given[name] for name in CASE})
        if "robot" in names:
            choice = {name: given[name] for name in _members(names["robot"])}
            if "choice" in names:
                arguments["choice"] = {"robot": values["robot"], **choice}
            arguments["robot"] = open_robot(values["robot"], **choice)
        places: list[Any] = []
        for name, parameter in names.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                places += arguments.pop(name) or ()
            elif parameter.kind is not parameter.KEYWORD_ONLY and name in arguments:
                places.append(arguments.pop(name))
        answer = self.function(*places, **arguments)
        if not isinstance(answer, output.Answer):
            return answer or 0
        output.print_result(answer.values, as_json, *answer.tables)
        return answer.code


def _words(value: Any) -> list[str]:
    """Return the values of an option or argument, which may be repeated."""
    return [word for word in (value if isinstance(value, tuple) else (value,)) if isinstance(word, str)]


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # not a file name
        return False


class CommandGroup(click.Group):
    """The verbs by task; a misspelt one is answered with the nearest, which click does by itself only since 8.4."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names."""
        verb = args[0]
        if verb not in self.commands and not verb.startswith("-") and not ctx.resilient_parsing:
            suggestion = nearest(verb, self.list_commands(ctx))
            ctx.fail(f"No such command {verb!r}." + (f" Did you mean {suggestion!r}?" if suggestion else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs of each task."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for task in TASKS:
            verbs = [name for name in self.list_commands(ctx) if getattr(self.commands[name], "task", None) == task]
            with formatter.section(task.capitalize()):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in verbs])


@click.group(cls=CommandGroup, context_settings=CONTEXT, epilog=EXAMPLES)
@click.version_option(__version__, prog_name="parflex")
def cli() -> None:
    """Dynamic models of parallel robots from one robot file.

    ROBOT is a name from the catalogue or the path of a TOML file. Units are SI and radians.
    """


def verb(
    task: str, *examples: str, name: str | None = None, note: str = "", of: str = "", omit: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Any]:
    """Add a command for a function that returns an `Answer`, or None if it prints by itself.

    Its `**options` are the arguments of the public function `of` that it does not name itself, without those of `omit`.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        title = "Examples" if len(examples) > 1 else "Example"
        epilog = f"\b\n{title}:\n" + "\n".join(f"  parflex {example}" for example in examples)
        epilog = f"{epilog}\n\n{note}" if note else epilog
        cli.add_command(Command(name or function.__name__, task, function, of, omit, epilog=epilog))
        return function

    return add


def _parameters(verb: str, names: dict[str, inspect.Parameter]) -> Iterator[click.Parameter]:
    """Yield the parameters of a command."""
    for name, parameter in names.items():
        positional = parameter.kind is not parameter.KEYWORD_ONLY
        if positional and name not in ("case", "choice"):
            yield _argument(verb, parameter)
        for member in _members(parameter) if name in GROUPS else () if positional else (name,):
            yield _option(verb, member, names.get(member, UNNAMED.get(member, UNNAMED[""])))
    if "as_json" not in names:
        yield _option(verb, "as_json", UNNAMED["as_json"])


def _members(parameter: inspect.Parameter) -> tuple[str, ...]:
    """Return the options that a parameter stands for."""
    return (*GROUPS[parameter.name], *(["elements"] if parameter.annotation == "Divided" else []))


def _argument(verb: str, parameter: inspect.Parameter) -> click.Argument:
    entry, required = option_of(verb, parameter.name), parameter.default is parameter.empty
    words: dict[str, Any] = {"metavar": entry.metavar or parameter.name.upper(), "shell_complete": entry.complete}
    words |= {} if required else {"default": parameter.default}  # a default, even None, would be enough for click
    nargs = -1 if parameter.kind is parameter.VAR_POSITIONAL else 1
    required = required and not words["metavar"].startswith("[")
    return click.Argument([parameter.name], nargs=nargs, required=required, **words)


def _option(verb: str, name: str, parameter: inspect.Parameter) -> click.Option:
    """Return the option of a parameter: flags by bool, numbers by int and float, and text that a reader reads."""
    entry, kind, default = option_of(verb, name), str(parameter.annotation), parameter.default
    required = default is parameter.empty
    choices: dict[str, Any] = {"help": _help(entry, name), "metavar": entry.metavar, "required": required}
    flags = [*entry.flags, name] if entry.flags else [f"--{name.replace('_', '-')}", name]
    if "bool" in kind:
        if default is not False:  # on, or chosen by the function
            flags[0] = f"{flags[0]}/--no-{flags[0][2:]}"
        return click.Option(flags, is_flag=True, default=default, help=choices["help"])
    if entry.many:
        return click.Option(flags, multiple=True, **choices)
    if entry.read is None and kind.startswith(("int", "float")):
        choices["type"] = int if kind.startswith("int") else float
    if not required and default not in (None, "", ()):
        choices |= {"default": default if entry.read is None else _text(default), "show_default": True}
    return click.Option(flags, **choices)


def _text(default: Any) -> str:
    """Return a default as an option has it."""
    return ",".join(default) if isinstance(default, (list, tuple)) else str(default)


def _help(entry: Option, name: str) -> str:
    """Return the help of an option with its unit; if it has none, that of the word of the Python functions."""
    word = WORDS.get(name)
    text = entry.help or re.sub(r"\bNone(:| is)", "default:", "" if word is None else word.text)
    if word is None or word.unit in ("", "dimensionless"):
        return text
    if any(re.search(rf"(?<![\w/]){re.escape(unit)}(?![\w/^])", text) for unit in word.unit.split(", ")):
        return text
    text, mark, default = text.rstrip(".").partition("; default")
    return f"{text} ({word.unit}){mark}{default}."


def _read(verb: str, name: str, value: Any, parameter: inspect.Parameter | None) -> Any:
    """Return the value of an option as its reader gives it; nothing given is the default of the signature."""
    entry = option_of(verb, name)
    if value is None or value == ():
        return None if parameter is None or parameter.default is parameter.empty else parameter.default
    return value if entry.read is None else entry.read(value, name.replace("_", "-"))
