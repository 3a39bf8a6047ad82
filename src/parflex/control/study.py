"""Studies: many plants with parameter errors under several laws."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from parflex import jobs as crews
from parflex.control.control import INDEXES, LoopSettings, run_law
from parflex.control.following import Track, track
from parflex.control.laws import Gains, Law, checked_gains, gains_from, make_law
from parflex.control.plant import PlantFamily, plant_family
from parflex.control.references import reference_from
from parflex.control.study_file import StudyFile, read_study
from parflex.control.variation import Parameter, parameters_of, perturbed_robot
from parflex.errors import InputError
from parflex.io import check_writable, write_text
from parflex.jobs import ChunkTask, run_job
from parflex.jobs import dask_executor as cluster_crew
from parflex.records import Answer, brief, name_list
from parflex.robot.load import acting_robot, load
from parflex.robot.robot import Robot

Array = np.ndarray

FORMAT = 2  # of the file that keeps cases: raise it when they mean something else

Case = tuple[int, int]  # percentage and template, by number

Laws = dict[str, dict[str, Any]]


@dataclass(eq=False, repr=False)
class Study(Answer):
    """What the study of `file` found: `cases` has, for each percentage and template, the result of each law.

    `parameters` are those that are wrong, `signs` which way (a row for each template), `others` cases of the file that
    were not asked for, `computed` those of this call, `interrupted` whether cases are left, `seconds` (s) the time it
    took.
    """

    file: StudyFile
    parameters: list[str]
    cases: dict[Case, dict[str, dict[str, Any]]] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)  # of the file, not asked for now
    computed: int = 0  # cases of this call
    interrupted: bool = False
    seconds: float = field(default=0.0, compare=False)
    signs: list[list[int]] = field(default_factory=list)  # of the parameters in each template

    @property
    def total(self) -> int:
        """Number of cases."""
        return len(self.file.percentages) * self.file.templates

    def summary(self) -> list[dict[str, Any]]:
        """Means over templates that all laws finish, failures apart, for each percentage."""
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
        gains = gains_of(file)
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
        """Signs -1, 0 and +1 of all parameters, a row for each template."""
        rng = np.random.default_rng(self.file.seed)
        return rng.integers(-1, 2, (self.file.templates, len(self.parameters)))

    def plant_robot(self, case: Case) -> Robot:
        """The robot of a case."""
        percentage, template = self.file.percentages[case[0]], self.templates()[case[1]]
        factors = {p: 1 + percentage / 100 * float(sign) for p, sign in zip(self.parameters, template, strict=True)}
        return self.plant_of(factors)

    def plant_of(self, factors: dict[Parameter, float]) -> Robot:
        """The robot with parameters off by some factors; what the study leaves out does not act in it either."""
        return acting_robot(perturbed_robot(self.robot, factors), self.file.without)

    def run(self, case: Case) -> dict[str, dict[str, Any]]:
        """What each law does with the plant of a case."""
        plant = self.family.plant(self.plant_robot(case))
        answer = {}
        for law in self.laws:
            result = run_law(law, plant, self.track, self.loop)
            answer[law.name] = {
                "errors": result.errors if result.ok else None,
                "failure": result.failure,
                "why": result.why,
                "stopped_at": result.stopped_at,
            }
        return answer


def gains_of(file: StudyFile) -> Gains:
    """The gains of a study."""
    table = file.gains
    return checked_gains(table.Kp, table.Kv) if table.Kp is not None else gains_from(table.overshoot, table.peak_time)


def study_solver(content: dict[str, Any]) -> Callable[[Case], Any]:
    """In a worker that is no fork: its own bench."""
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
    study : StudyFile, str or Path
        Study, or path of its file.
    out : str or Path, default None
        JSON file that keeps every case; a later call with it continues there.
    jobs : int, default None
        Processes side by side; None: one per core.
    cluster : str, default None
        Address of a Dask scheduler whose workers compute; None: this machine.
    progress : callable, default None
        Called with (cases done, all cases) at intervals.
    bench : Bench, default None
        Compiled laws and plants from an earlier call.

    Returns
    -------
    Study
        Errors of each law for each percentage and template; `summary()` has their means.
    """
    begin = perf_counter()
    crews.number_of_jobs(jobs)
    file = study if isinstance(study, StudyFile) else read_study(study)
    bench = bench or StudySetup(file)
    findings = Study(file, [parameter.word for parameter in bench.parameters], signs=bench.templates().tolist())
    path, key = None if out is None else Path(out), _key(bench)
    results = StudyResults(findings, path, key)
    if path is not None:
        _check_target(path)
        results.take_up()
    every = [(a, b) for a in range(len(file.percentages)) for b in range(file.templates)]

    def told() -> None:
        findings.computed += 1
        if progress is not None:
            progress(len(findings.cases), findings.total)

    def crew(cases: int) -> crews.ExecutorPool:
        return crews.process_pool(jobs, cases) if cluster is None else cluster_crew(cluster)

    content = file.model_dump(mode="json")
    if Path(file.robot).is_file():
        content["robot"] = str(Path(file.robot).resolve())  # workers may stand in another folder
    name = hashlib.sha256((key + json.dumps(content, sort_keys=True)).encode()).hexdigest()
    task = ChunkTask(study_solver, content, name, ready=bench.run)
    findings.interrupted = run_job(
        results, lambda: [case for case in every if case not in findings.cases], task, crew, path, key, told
    )
    findings.seconds = perf_counter() - begin
    return findings


def _key(bench: StudySetup) -> str:
    """Everything that the numbers of a study come from, but how many percentages and templates were asked for."""
    file = bench.file.model_dump(mode="json", exclude={"percentages", "templates"})
    described = bench.robot.description.model_dump_json()
    return hashlib.sha256(json.dumps([FORMAT, file, described], sort_keys=True).encode()).hexdigest()


def _check_target(path: Path) -> None:
    if path.suffix != ".json":
        raise InputError(
            "is not a JSON file", file=str(path), key="out", value=str(path), hint="use a name that ends in .json"
        )
    check_writable(path)


class StudyResults:
    """What a study keeps: its cases by percentage and template, whatever their numbers are in this call."""

    def __init__(self, study: Any, path: Path | None, key: str) -> None:
        self.study, self.path, self.key = study, path, key
        self.number = {percentage: k for k, percentage in enumerate(study.file.percentages)}

    def put(self, case: Any, laws: Laws) -> None:
        """Take over a case, by its numbers or by its percentage and template."""
        if isinstance(case, dict):
            self._known({**case, "laws": laws})
        else:
            self.study.cases[case] = laws

    def _known(self, entry: dict[str, Any]) -> None:
        """A case of the file or the journal, asked for now or not."""
        percentage, template = entry["percentage"], entry["template"]
        if percentage in self.number and template < self.study.file.templates:
            self.study.cases[self.number[percentage], template] = entry["laws"]
        elif not any(
            (other_case["percentage"], other_case["template"]) == (percentage, template)
            for other_case in self.study.others
        ):
            self.study.others.append(entry)

    def packed(self, case: Any, laws: Laws) -> bytes:
        """A case for the journal."""
        return json.dumps(self._entry(case, laws), allow_nan=False).encode()

    def unpacked(self, data: bytes) -> tuple[Any, Laws]:
        """What `packed` wrote."""
        entry = json.loads(data)
        laws = entry.pop("laws")
        return entry, laws

    def _entry(self, case: Any, laws: Laws) -> dict[str, Any]:
        percentage, template = self.study.file.percentages[case[0]], case[1]
        return {"percentage": percentage, "template": template, "signs": self.study.signs[template], "laws": laws}

    def take_up(self) -> None:
        """Cases that a file has already; a file of another study is refused, not replaced."""
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
                self._known(entry)
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
            "cases": [*(self._entry(case, laws) for case, laws in sorted(study.cases.items())), *study.others],
            "summary": study.summary(),
        }
        write_text(self.path, json.dumps(content, allow_nan=False))


def summary(file: StudyFile, cases: Mapping[tuple[int, int], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A table for each percentage: errors by law, how each compares with the first, and what failed."""
    rows = []
    for number, percentage in enumerate(file.percentages):
        percentage_cases = [
            cases[number, template] for template in range(file.templates) if (number, template) in cases
        ]
        both = [case for case in percentage_cases if all(not case[law]["failure"] for law in file.laws)]
        rows.append(
            {
                "percentage": percentage,
                "done": len(percentage_cases),
                "compared": len(both),
                "errors": {law: _means(both, law) for law in file.laws},
                "ratio": {law: _ratios(both, file.laws[0], law) for law in file.laws[1:]},
                "losing": {law: _losing(both, file.laws[0], law) for law in file.laws[1:]},
                "failures": {
                    law: dict(Counter(case[law]["failure"] for case in percentage_cases if case[law]["failure"]))
                    for law in file.laws
                },
            }
        )
    return rows


def _means(cases: list[Mapping[str, Any]], law: str) -> dict[str, float | None]:
    return {k: float(np.mean([c[law]["errors"][k] for c in cases])) if cases else None for k in INDEXES}


def _ratios(cases: list[Mapping[str, Any]], first: str, law: str) -> dict[str, float | None]:
    """Means of a law over those of the first; None where the first has no error."""
    first_means, law_means = _means(cases, first), _means(cases, law)
    return {k: law_means[k] / first_means[k] if first_means[k] and law_means[k] is not None else None for k in INDEXES}  # type: ignore[operator]


def _losing(cases: list[Mapping[str, Any]], first: str, law: str) -> dict[str, float | None]:
    """Share of the single templates in which the law errs more than the first."""
    return {
        k: float(np.mean([c[law]["errors"][k] > c[first]["errors"][k] for c in cases])) if cases else None
        for k in INDEXES
    }
