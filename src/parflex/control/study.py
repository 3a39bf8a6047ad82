"""Studies: many plants with parameter errors under several laws."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from parflex import jobs as executors
from parflex.control.control import INDEXES, LoopSettings, run_law
from parflex.control.laws import Law, make_law, read_gains
from parflex.control.plant import PlantFamily, plant_family
from parflex.control.references import reference_from
from parflex.control.study_file import StudyFile, read_study
from parflex.control.variation import Parameter, parameters_of, perturbed_robot
from parflex.errors import InputError
from parflex.io import check_writable, write_text
from parflex.records import Answer, brief, name_list
from parflex.robot.load import acting_robot, load
from parflex.robot.robot import Robot
from parflex.trajectories.follow import Track, track

Array = np.ndarray
FORMAT = 3  # of the file of cases: raise it when it means something else
Case = tuple[int, int]  # percentage and template, by number
Laws = dict[str, dict[str, Any]]


@dataclass(eq=False, repr=False)
class Study(Answer):
    """Result of the study of `file`: `known` has, by percentage and template, the result of each law.

    `cases` are those of this study by their numbers, `parameters` those that are wrong, `signs` their signs (a row for
    each template), `computed` the cases of this call, `interrupted` whether cases are left, `seconds` the time (s).
    """

    file: StudyFile
    parameters: list[str]
    known: dict[tuple[float, int], Laws] = field(default_factory=dict)
    computed: int = 0
    interrupted: bool = False
    seconds: float = field(default=0.0, compare=False)
    signs: list[list[int]] = field(default_factory=list)

    @property
    def cases(self) -> dict[Case, Laws]:
        """Return the result of each law for each percentage and template, by number."""
        every = product(enumerate(self.file.percentages), range(self.file.templates))
        return {(k, n): self.known[percentage, n] for (k, percentage), n in every if (percentage, n) in self.known}

    @property
    def total(self) -> int:
        """Return the number of cases."""
        return len(self.file.percentages) * self.file.templates

    def summary(self) -> list[dict[str, Any]]:
        """Return means over templates that all laws finish, failures apart, for each percentage."""
        return summary(self.file, self.cases)

    def _told(self) -> str:
        return (
            f"{brief(self.file.robot)}: {len(self.cases)} of {self.total} cases, laws {name_list(list(self.file.laws))}"
        )


class StudySetup:
    """Everything that the runs of a study share: laws, reference, compiled programs of the plants."""

    def __init__(self, file: StudyFile) -> None:
        self.file = file
        loaded = load(file.robot, settings=file.settings, actuation=file.actuation, working_mode=file.working_mode)
        self.robot: Robot = acting_robot(loaded, file.without)
        gains = read_gains(**file.gains.model_dump())
        self.loop = LoopSettings(**file.loop.model_dump())
        self.loop.limits(self.robot.actuated_names)
        reference = reference_from(self.robot, file.reference)  # words are read before anything is compiled
        self.laws: list[Law] = [make_law(self.robot, name, gains) for name in file.laws]
        names = list(dict.fromkeys(name for law in self.laws for name in law.sensed))
        self.parameters: list[Parameter] = parameters_of(self.robot, file.vary)
        self.track: Track = track(self.robot, reference, names)
        if not file.ignore_limits:
            self.track.refuse_violations(self.robot, reference.end)
        self.nominal = self.plant_of({})
        every = {parameter: 1 + 0.01 * (1 + k) / len(self.parameters) for k, parameter in enumerate(self.parameters)}
        self.family: PlantFamily = plant_family(self.nominal, self.plant_of(every))
        for law in self.laws:
            law.geometry.compiled()
            law.program.compiled()

    def templates(self) -> Array:
        """Return signs -1, 0 and +1 of all parameters, a row for each template."""
        rng = np.random.default_rng(self.file.seed)
        return rng.integers(-1, 2, (self.file.templates, len(self.parameters)))

    def plant_robot(self, case: Case) -> Robot:
        """Return the robot of a case."""
        percentage, template = self.file.percentages[case[0]], self.templates()[case[1]]
        factors = {p: 1 + percentage / 100 * float(sign) for p, sign in zip(self.parameters, template, strict=True)}
        return self.plant_of(factors)

    def plant_of(self, factors: dict[Parameter, float]) -> Robot:
        """Return the robot with factors on parameters, without the terms that the study leaves out."""
        return acting_robot(perturbed_robot(self.robot, factors), self.file.without)

    def run(self, case: Case) -> dict[str, dict[str, Any]]:
        """Return the result of each law with the plant of a case."""
        plant = self.family.plant(self.plant_robot(case))
        answer = {}
        for law in self.laws:
            result = run_law(law, plant, self.track, self.loop)
            words = {word: getattr(result, word) for word in ("failure", "why", "stopped_at")}
            answer[law.name] = {"errors": result.errors if result.ok else None, **words}
        return answer


def study_solver(content: dict[str, Any]) -> Callable[[Case], Any]:
    """Return the function that computes a case in a worker process."""
    return StudySetup(StudyFile.model_validate(content)).run


def run_study(
    study: StudyFile | str | Path,
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    bench: StudySetup | None = None,
) -> Study:
    """Compare control laws under parameter errors; what is done already is not run again.

    Parameters
    ----------
    out : str or Path, default None
        JSON file that keeps every case; a later call with it continues there.
    progress : callable, default None
        Called with (cases done, all cases) at intervals.
    study, jobs, cluster, bench
        See `parflex.api.WORDS`.

    Returns
    -------
    Study
        Errors of each law for each percentage and template; `summary()` has their means.
    """
    begin = perf_counter()
    executors.number_of_jobs(jobs)
    file = study if isinstance(study, StudyFile) else read_study(study)
    bench = bench or StudySetup(file)
    findings = Study(file, [parameter.word for parameter in bench.parameters], signs=bench.templates().tolist())
    path, key = None if out is None else Path(out), _key(bench)
    results = StudyResults(findings, path, key)
    if path is not None:
        if path.suffix != ".json":
            hint = "use a name that ends in .json"
            raise InputError("is not a JSON file", file=str(path), key="out", value=str(path), hint=hint)
        check_writable(path)
        results.take_up()
    every = list(product(range(len(file.percentages)), range(file.templates)))

    def told() -> None:
        findings.computed += 1
        if progress is not None:
            progress(len(findings.cases), findings.total)

    def workers(cases: int) -> executors.Workers:
        return executors.process_workers(jobs, cases) if cluster is None else executors.dask_workers(cluster)

    content = file.model_dump(mode="json")
    if Path(file.robot).is_file():
        content["robot"] = str(Path(file.robot).resolve())  # workers may stand in another folder
    name = hashlib.sha256((key + json.dumps(content, sort_keys=True)).encode()).hexdigest()
    task = executors.ChunkTask(study_solver, content, name, ready=bench.run)

    done = findings.cases
    left = [case for case in every if case not in done]
    findings.interrupted = executors.run_job(results, left, task, workers, path, told)
    findings.seconds = perf_counter() - begin
    return findings


def _key(bench: StudySetup) -> str:
    """Return everything that the numbers of a study come from, but its percentages and number of templates."""
    file = bench.file.model_dump(mode="json", exclude={"percentages", "templates"})
    described = bench.robot.description.model_dump_json()
    return hashlib.sha256(json.dumps([FORMAT, file, described], sort_keys=True).encode()).hexdigest()


class StudyResults:
    """The file of a study: its cases by percentage and template, whatever their numbers are in this call."""

    def __init__(self, study: Study, path: Path | None, key: str) -> None:
        self.study, self.path, self.key = study, path, key
        self.signs = dict(enumerate(study.signs))  # by template, those of the file too

    def put(self, case: Any, laws: Laws) -> None:
        """Take over a case by its numbers."""
        percentage, template = case
        self.study.known[self.study.file.percentages[percentage], template] = laws

    def take_up(self) -> None:
        """Read the cases that the file has already; a file of another study is refused, not replaced."""
        assert self.path is not None
        if not self.path.exists():
            return
        other = InputError(
            "does not hold this study", file=str(self.path), key="out", value=str(self.path), hint="name another file"
        )
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["study"] != self.key:
                raise other
            for entry in stored["cases"]:
                self.study.known[float(entry["percentage"]), entry["template"]] = entry["laws"]
                self.signs.setdefault(entry["template"], entry["signs"])
        except (OSError, ValueError, KeyError, TypeError):
            raise other from None

    def save(self) -> None:
        """Write all cases and their summary."""
        assert self.path is not None
        study = self.study
        content = {
            "study": self.key,
            "file": study.file.model_dump(mode="json"),
            "parameters": study.parameters,
            "cases": [
                {"percentage": percentage, "template": template, "signs": self.signs[template], "laws": laws}
                for (percentage, template), laws in sorted(study.known.items(), key=lambda item: item[0])
            ],
            "summary": study.summary(),
        }
        write_text(self.path, json.dumps(content, allow_nan=False))


def summary(file: StudyFile, cases: Mapping[Case, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a table for each percentage: errors by law, how each compares with the first law, and what failed.

    Means are over templates that all laws finish; `losing` is the share in which a law errs more than the first.
    """
    rows, laws = [], file.laws
    for number, percentage in enumerate(file.percentages):
        done = [cases[number, template] for template in range(file.templates) if (number, template) in cases]
        both = [case for case in done if all(not case[law]["failure"] for law in laws)]
        errors = np.array([[[case[law]["errors"][k] for k in INDEXES] for law in laws] for case in both])
        means = losing = np.full((len(laws), len(INDEXES)), np.nan)
        if both:
            means, losing = errors.mean(axis=0), (errors > errors[:, :1]).mean(axis=0)
        ratios = np.divide(means, means[0], out=np.full_like(means, np.nan), where=means[0] > 0)
        failures = {law: Counter(case[law]["failure"] for case in done if case[law]["failure"]) for law in laws}
        rows.append(
            {
                "percentage": percentage,
                "done": len(done),
                "compared": len(both),
                "errors": _by_law(laws, means),
                "ratio": _by_law(laws[1:], ratios[1:]),
                "losing": _by_law(laws[1:], losing[1:]),
                "failures": {law: dict(counts) for law, counts in failures.items()},
            }
        )
    return rows


def _by_law(laws: Sequence[str], values: Array) -> dict[str, dict[str, float | None]]:
    """Return values of all indexes by law; None where there is none."""
    rows = [[float(value) if np.isfinite(value) else None for value in row] for row in values]
    return {law: dict(zip(INDEXES, row, strict=True)) for law, row in zip(laws, rows, strict=True)}
