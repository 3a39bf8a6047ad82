"""Command lines that nobody should type: an exit code as documented, one sentence, and nothing left behind."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parflex.cli.main import cli, main

# exit code, command line; paths are those of the folder that `workplace` fills
REFUSED = """
frobnicate
info
info nothing
info ''
info ' '
info .
info ..
info folder
info missing.toml
info empty.toml
info binary.toml
info broken.toml
info /dev/null
info 5r extra
info 5r --frobnicate
info 5r --set
info 5r --set nonsense
info 5r --set =
info 5r --set =1
info 5r --set constants.nothing=1
info 5r --set constants.proximal=nan
info 5r --set constants.proximal=inf
info 5r --set constants.proximal=1e300
info 5r --set constants.proximal=1e999
info 5r --set constants.proximal=one
info 5r --set constants.proximal=[1]
info 5r --set 'constants.proximal=1/0'
info 5r --set 'constants.proximal=9**9**9**9'
info 5r --set name=3
info 5r --set name=
info 5r --set format=2
info 5r --set gravity=3
info 5r --set gravity=[1,2]
info 5r --set motion=sideways
info 5r --set legs=3
info 5r --set frame=3
info 5r --set a.b.c.d.e.f=3
info 5r --payload 1
info 5r --payload nan,0,0,0
info 5r --payload inf,0,0,0
info 5r --payload -1,0,0,0
info 5r --payload 1,2,3
info 5r --payload 1;2;3;4
info 5r --payload 1,2,3,4,5
info 5r --payload ''
info 5r --payload a,b,c,d
info 5r --payload 1e300,0,0,0
info 5r --actuation nothing
info 5r --actuation ''
info 5r --working-mode nothing
info 5r --working-mode ''
check missing.toml
check folder
check empty.toml
check broken.toml
check cycle.toml
check 5r --strict --set 'constants.proximal=-'
new ''
new ../x
new five -o taken.toml
new five -o folder
new five -o no/such/folder/x.toml
pose 5r --pose
pose 5r --pose ''
pose 5r --pose =
pose 5r --pose x
pose 5r --pose x=
pose 5r --pose =1
pose 5r --pose x=nan
pose 5r --pose x=inf,y=0
pose 5r --pose x=1e30
pose 5r --pose x=0.1;y=0.5
pose 5r --pose x=0.1,x=0.2
pose 5r --pose x=0,y=100
pose 5r --pose tip.w=1
pose 5r --pose nobody.x=1
pose 5r --pose left.1=1,left.2=1,right.1=1,right.2=1
pose gough-stewart --pose z=1e30
pose gough-stewart --pose qw=0,qx=0,qy=0,qz=0
pose gough-stewart --pose rx=1,qw=1,qx=0,qy=0,qz=0
pose 3rrr --pose x=0.1,theta=0.1,theta_deg=5
pose 3rrr --pose z=0.1
draw 5r
draw 5r -o
draw 5r -o robot.txt
draw 5r -o folder
draw 5r -o no/such/folder/robot.svg
draw 5r -o /proc/robot.svg
draw 5r -o robot.svg --pose nowhere
inverse 5r --velocity x
inverse 5r --velocity x=nan
inverse 5r --velocity x=1,y=1,left.1=3
inverse 5r --acceleration left.9=1
inverse 5r --acceleration x=1e400
inverse 5r --without wind
inverse 5r --wrench tip
inverse 5r --wrench tip=
inverse 5r --wrench tip=1
inverse 5r --wrench tip=1,2,3,4,5,6,7
inverse 5r --wrench tip=nan,0,0
inverse 5r --wrench nobody=1,2,3
inverse 5r --wrench tip=1,2,0 --wrench tip=1,2,0
inverse 5r --state missing.json
inverse 5r --state folder
inverse 5r --state broken.toml
inverse 5r --state list.json
inverse 5r --state words.json
inverse double-four-bar.toml
inverse 5r --effort left.1=1
direct 5r --effort nobody=1
direct 5r --effort left.1=nan
direct 5r --effort left.1
direct 5r --effort left.1=1,left.1=2
direct 5r --acceleration x=1
count 5r
count 5r nothing
count 5r inverse --operator-limit 1
count 5r inverse --operator-limit -1
count 5r inverse --operator-limit x
count 5r inverse --with wind
count 5r inverse --parameters nothing
codegen 5r inverse
codegen 5r inverse -o out --target fortran
codegen 5r nothing -o out
codegen 5r inverse -o taken.toml
codegen 5r inverse -o /proc/out
codegen 5r inverse -o out --target numpy --float32
frequencies 3rrr
frequencies dualemps --modes 0
frequencies dualemps --modes -3
frequencies dualemps --modes 1000
frequencies dualemps --modes many
frequencies dualemps --elements 0
frequencies dualemps --elements -1
frequencies dualemps --elements 1000000000
frequencies dualemps --elements 1.5
frequencies dualemps --lock nobody
frequencies dualemps --lock ''
frequencies dualemps --lock 11,,21
frequencies dualemps --servo -1
frequencies dualemps --servo nan
frequencies dualemps --servo 1,2
frequencies dualemps --servo nobody=1
frequencies dualemps --servo-damping -5
frequencies dualemps --about nothing
frequencies dualemps --load 17
frequencies dualemps --load 17:1
frequencies dualemps --load 17:nan,0,0
frequencies dualemps --load nobody:1,2,3
frequencies dualemps --effort 11=1
frequencies dualemps --without wind
frequencies dualemps --pose nowhere
stiffness dualemps --frame nobody
stiffness dualemps --lock none
statespace dualemps
statespace dualemps --input nobody --output 17.y
statespace dualemps --servo 1e6 --input 11 --output 17.q
statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies 1
statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies 1:2:-3
statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies 5:1:3
statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies nan:1:3
statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies 0:1:3:log
statespace dualemps --servo 1e6 --input 11 --output 17.y -o plant.txt
statespace dualemps --servo 1e6 --input 11 --output 17.y -o folder.npz
map dualemps
map dualemps --over 11=0:1:2
map dualemps --over 11=0:1:2 --out map.txt
map dualemps --over 11 --out map.npz
map dualemps --over 11=0:1 --out map.npz
map dualemps --over 11=0:1:0 --out map.npz
map dualemps --over 11=0:1:-2 --out map.npz
map dualemps --over 11=0:nan:2 --out map.npz
map dualemps --over 11=0:1:1e99 --out map.npz
map dualemps --over 11=0:1:1000000000,21=0:1:1000000000 --out map.npz
map dualemps --over nobody=0:1:2 --out map.npz
map dualemps --over 11=0:1:2,11=0:1:2 --out map.npz
map dualemps --over 11=0:0.1:2 --modes -3 --out map.npz
map dualemps --over 11=0:0.1:2 --modes 0 --out map.npz
map dualemps --over 11=0:0.1:2 --modes 1000 --out map.npz
map dualemps --over 11=0:0.1:2 --fixed 11=0 --out map.npz
map dualemps --over 11=0:0.1:2 --out no/such/folder/map.npz
map dualemps --over 11=0:0.1:2 --out broken.npz
map dualemps --over 11=0:0.1:2 --out map.npz --figure map.txt
motion 5r
motion 5r nowhere
motion 5r missing.toml
motion 5r missing.csv
motion 5r '{ }'
motion 5r '{ moves = 3 }'
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = nan }'
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1e19 }'
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1'
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --step 0
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --step 1e-300
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --time nan
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --time-optimal
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --time-optimal --effort-limit -1
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --time-optimal --effort-limit wrist=1
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --effort-limit 3
motion 5r '{ moves = [{ "left.1" = 0.1 }], duration = 1 }' --figure fast.svg
motion 5r '{ sines = { "left.1" = [0.1] }, frequency = 1e19 }'
motion 5r '{ sines = { "left.1" = [0.1] }, frequency = 1 }'
motion 5r '{ circle = { centre = [0, 0.4, 0], start = [0.1, 0.4, 0] }, speed = 1, ramp = 1 }' --time 1e300
codegen 5r motion --target c -o out
sensitivities
sensitivities navaro
sensitivities navaro --response frequency:1 --to constants.beauty
sensitivities navaro --response frequency:99 --to constants.bar
sensitivities navaro --response beauty --to constants.bar
sensitivities 3rrr --response frequency:1 --to constants.arm
optimise
optimise nothing.toml --out best
optimise taken.toml --out best
sweep
sweep nothing.toml
sweep nothing.toml --out table.npz
sweep taken.toml --out table.npz
sweep taken.toml --out table.csv
sweep taken.toml --out table.npz --jobs 0
sweep taken.toml --out table.npz --cluster nowhere
identify
identify emps
identify emps nothing.csv
identify emps taken.toml
identify emps nothing.csv --estimator magic
excite
excite dualemps
excite emps --time -1
excite emps --harmonics 1
excite emps --distance 2
excite emps --workspace x=1
excite emps --velocity-limit axel=1
excite emps --out taken.toml
update
update dualemps
update dualemps nothing.csv
update dualemps nothing.csv --vary constants.beauty
update dualemps taken.toml --vary constants.blade
update dualemps nothing.uff --vary constants.blade
update dualemps taken.toml --vary constants.blade --band 1-2
update dualemps nothing.uff --vary constants.blade --sensors 1
update dualemps nothing.csv --vary constants.blade --elements 0
update dualemps nothing.csv --vary constants.blade --prior constants.bald=0.1
export
export mjcf
export mjcf 5r
export step 5r -o out.step
export mjcf c5 -o out.xml
export urdf planar-cable -o out.urdf
export mjcf 5r -o out.xml --step 0.001
export fmu 5r -o out.fmu --fmi 1
export fmu 5r -o out.fmu --kind both
export fmu 5r -o out.fmu --step -1
export fmu 4rrr -o out.fmu --drive motions
export urdf 5r -o taken.toml/out.urdf
import
import nothing.urdf
import nothing.urdf -o robot.toml
import nothing.step -o robot.toml
import taken.toml -o robot.toml
import nothing.urdf -o robot.urdf
import nothing.urdf -o nowhere/robot.toml
import nothing.par --floating -o robot.toml
import nothing.xml --loops loops.yaml -o robot.toml
simulate 5r
simulate 5r --time 1
simulate 5r --time -1 --out run.csv
simulate 5r --time 0 --out run.csv
simulate 5r --time nan --out run.csv
simulate 5r --time inf --out run.csv
simulate 5r --time 1e300 --out run.csv
simulate 5r --time 1e-300 --out run.csv
simulate 5r --time 1e-300 --step 1e-300 --out run.csv
simulate 5r --time 1 --step 0 --out run.csv
simulate 5r --time 1 --step -1 --out run.csv
simulate 5r --time 1 --step nan --out run.csv
simulate 5r --time 1 --step 1e-300 --out run.csv
simulate 5r --time 1 --out-step 0 --out run.csv
simulate 5r --time 1 --out-step nan --out run.csv
simulate 5r --time 1 --method euler --out run.csv
simulate 5r --time 1 --tolerance 0 --out run.csv
simulate 5r --time 1 --tolerance nan --out run.csv
simulate 5r --time 1 --method generalized-alpha --radius 2 --out run.csv
simulate 5r --time 1 --motion nowhere --out run.csv
simulate 5r --time 1 --motion missing.csv --out run.csv
simulate 5r --time 1 --motion knots.csv --out run.csv
simulate 5r --time 1 --motion folder --out run.csv
simulate 5r --time 1 --start sideways --out run.csv
simulate 5r --time 1 --drive wheels --out run.csv
simulate 5r --time 1 --without wind --out run.csv
simulate 5r --time 1 --frames nobody --out run.csv
simulate 5r --time 1 --effort nobody=1 --out run.csv
simulate 5r --time 1 --wrench nobody=1,2,3 --out run.csv
simulate 5r --time 1 --friction-width -1 --out run.csv
simulate 5r --time 0.01 --low-pass -1 --out run.csv
simulate 5r --time 1 --elements 0 --out run.csv
simulate 5r --time 1 --out run.txt
simulate 5r --time 1 --out folder
simulate 5r --time 1 --out no/such/folder/run.csv
simulate dualemps --time 1 --motion square --effort 11=1 --out run.csv
simulate dualemps --time 1 --motion square --pose home --out run.csv
control 5r
control 5r --law pd
control 5r --law wind --reference circle:radius=0.01
control 5r --law pd --reference ''
control 5r --law pd --reference circle
control 5r --law pd --reference circle:radius=nan
control 5r --law pd --reference circle:radius=-1
control 5r --law pd --reference circle:radius=0.01,time=0
control 5r --law pd --reference circle:colour=3
control 5r --law pd --reference square:side=1
control 5r --law pd --reference quintic:missing.csv
control 5r --law pd --reference quintic:knots.csv
control 5r --law pd --reference circle:radius=0.01 --kp 1
control 5r --law pd --reference circle:radius=0.01 --kp -1 --kv 1
control 5r --law pd --reference circle:radius=0.01 --sample-time 0
control 5r --law pd --reference circle:radius=0.01 --delay -1
control 5r --law pd --reference circle:radius=0.01 --noise -1
control 5r --law pd --reference circle:radius=0.01 --rates guessed
control 5r --law pd --reference circle:radius=0.01 --time -1
control 5r --law pd --reference circle:radius=0.01 --overshoot 2
control 5r --law pd --reference circle:radius=0.01 --peak-time 0
control 5r --law pd --reference circle:radius=0.01 --effort-limit -1
control 5r --law pd --reference circle:radius=0.01 --effort-limit ''
control 5r --law pd --reference circle:radius=0.01 --plant nothing
control 5r --law pd --reference circle:radius=0.01 --compensate wind
control 5r --law pd --reference circle:radius=0.01 --out run.txt
study missing.toml
study folder
study empty.toml
study broken.toml
study taken.toml
study study.toml --jobs 0
study study.toml --jobs -1
study study.toml --figure study.txt
plot
plot missing.csv -o run.svg
plot knots.csv -o run.svg
plot folder -o run.svg
plot dualemps -o run.txt
plot dualemps --modes 0 -o modes.svg
plot dualemps --amplitude nan -o modes.svg
plot dualemps --amplitude -1 -o modes.svg
plot 3rrr -o modes.svg
reproduce Nobody1999
view 5r --mode 0
view 5r --amplitude nan
view 5r --amplitude 200
view 5r --seconds -1
view 5r --record page.txt
view 5r --run missing.csv
completion csh
completion
explain nothing
explain
"""
DONE = """
info 5r
info 'tests \u00e4\u03b2\u4e2d.toml'
check taken.toml
pose 5r --pose x=0.05,y=0.5
pose 5r --pose ' x = 0.05 , y = 0.5 '
pose 5r --pose home
inverse 5r --set gravity=[0,0,0]
inverse 5r --without ' friction , gravity '
inverse 5r --without ,,
inverse 5r --wrench tip=0,5,0
direct 5r --payload 0,0,0,0
frequencies dualemps --modes 1
schema
list
explain 5r
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Any:
    """A folder with files of all kinds."""
    from parflex.description.template import template

    folder = tmp_path_factory.mktemp("hostile")
    (folder / "folder").mkdir()
    (folder / "folder.npz").mkdir()
    (folder / "empty.toml").write_text("")
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    (folder / "broken.toml").write_text('format = 1\nname = "x\n')
    (folder / "taken.toml").write_text(template("taken"))
    (folder / "tests \u00e4\u03b2\u4e2d.toml").write_text(template("taken"))
    ring = 'format = 1\nname = "ring"\n[[frame]]\nname = "a"\nparent = "b"\n[[frame]]\nname = "b"\nparent = "a"\n'
    (folder / "cycle.toml").write_text(ring)
    (folder / "list.json").write_text("[1, 2")
    (folder / "words.json").write_text('{"pose": {"x": NaN}, "velocity": [1, 2]}')
    (folder / "knots.csv").write_text("t,left.1\n0,0\nnan,1\n")
    (folder / "broken.npz").write_bytes(b"PK\3\4 no zip")
    (folder / "study.toml").write_text('robot = "3rrr"\nlaws = ["wind"]\n')
    for name in ("double-four-bar.toml",):
        (folder / name).write_text((Path(__file__).parent / "robots" / name).read_text())
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def run(words: list[str]) -> tuple[int, str, str]:
    """A command in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code or 0
    return code, out.getvalue(), err.getvalue()


def refuse_constant(word: str) -> Any:
    raise AssertionError(f"JSON has {word}")


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def lines_of(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.strip().splitlines()]


def test_the_battery_is_large_and_has_every_verb():
    lines = lines_of(REFUSED) + lines_of(DONE)
    assert len(lines) > 250
    assert set(cli.commands) <= {words[0] for words in lines}
    assert len({tuple(words) for words in lines}) == len(lines), "one of them stands there twice"


def complaint(words: list[str], folder: Path, before: set[str]) -> str:
    """What is wrong with the answer to a hostile command line; empty if it is as it should be."""
    code, out, err = run([*words, "--json"])
    said = f"parflex {shlex.join(words)} -> {code} {err[:300]}"
    new = files_of(folder) - before
    for name in new:
        (folder / name).unlink()
    sentences = [line for line in err.splitlines() if not line.startswith("warning: ")]
    if code != 2 or len(sentences) != 1 or not sentences[0].startswith("error: ") or len(sentences[0]) < 16:
        return f"no sentence with exit code 2: {said}"
    if "Traceback" in err or "failed unexpectedly" in err or "None" in err:
        return f"no sentence for people: {said}"
    error = json.loads(out, parse_constant=refuse_constant)["error"]
    if set(error) != {"kind", "message", "file", "key", "value", "hint"} or not error["message"]:
        return f"no error object: {said}"
    return f"left behind {new}: {said}" if new else ""


@pytest.mark.few
@pytest.mark.parametrize("verb", [*sorted(cli.commands), "frobnicate"])
def test_hostile_command_lines_get_one_sentence_and_exit_code_2(verb, workplace):
    before = files_of(workplace)
    complaints = [complaint(words, workplace, before) for words in lines_of(REFUSED) if words[0] == verb]
    assert not any(complaints), "\n".join(filter(None, complaints))


def test_harmless_command_lines_are_answered(workplace):
    before = files_of(workplace)
    for words in lines_of(DONE):
        code, out, err = run([*words, "--json"])
        assert code == 0 and "error" not in err, (words, code, err)
        json.loads(out, parse_constant=refuse_constant)
    assert files_of(workplace) == before


@pytest.mark.few
@pytest.mark.parametrize("line", ["info nothing", "pose 5r --pose x=0,y=100 --json", "map dualemps --over 11"])
def test_a_process_of_its_own_says_the_same(line, workplace):
    words = shlex.split(line)
    code, out, err = run(words)
    answer = subprocess.run([sys.executable, "-m", "parflex", *words], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (code, out, err)
