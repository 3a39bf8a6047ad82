"""How the source is laid out: what may stand where. Each rule is one test, and names the lines that break it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache

import pytest
from source_trees import modules, nodes

from parflex.bodies import Body, ElasticBody, RigidBody

KINDS_OF_BODIES = {"ElasticBody", "RigidBody"}
WRITERS = {"setdefault", "update", "pop", "popitem", "clear", "__setitem__", "__delitem__"}  # methods of a dict


def broken(rule, skip: str = "\0") -> list[str]:
    """Where a rule, which gives the nodes of a tree that break it, is broken."""
    found = [(path, node) for path, tree in modules().items() if not path.startswith(skip) for node in rule(tree)]
    return [f"{path}:{node.lineno}: {ast.unparse(node)[:80]}" for path, node in found]


# -- bodies -------------------------------------------------------------------------------------------------


def names_in(node: ast.AST) -> set[str]:
    """All names in an expression, and behind the dots."""
    kinds = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name"}
    return {getattr(part, kinds[type(part)]) for part in ast.walk(node) if type(part) in kinds}


def kind_names(tree: ast.Module) -> set[str]:
    """The classes of bodies by the names that a module gives them: of imports, and of constants made of them."""
    known = set(KINDS_OF_BODIES)
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name for alias in node.names if alias.name in KINDS_OF_BODIES}
    for node in nodes(tree):
        made = isinstance(node, ast.Assign) and not any(isinstance(n, ast.Call) for n in ast.walk(node.value))
        if made and names_in(node.value) & known:
            known |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return known


def decisions_by_kind(tree: ast.Module) -> Iterator[ast.AST]:
    """Questions for the class of a body: isinstance, its type or class compared, patterns of match, hasattr."""
    known = kind_names(tree) if names_in(tree) & KINDS_OF_BODIES else set()
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked = known and node.func.id in ("isinstance", "issubclass") and names_in(node.args[1]) & known
            tried = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
            if asked or (tried and "body" in names_in(node.args[0])):
                yield node
        asked = node if isinstance(node, ast.Compare) else node.cls if isinstance(node, ast.MatchClass) else None
        if known and asked is not None and names_in(asked) & known:
            yield node


def test_what_kind_a_body_is_is_asked_in_the_package_of_bodies_alone():
    assert broken(decisions_by_kind, skip="bodies/") == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(link.body, ElasticBody)",
        "isinstance(body, (int, bodies.ElasticBody))",
        "from parflex.bodies import ElasticBody as E\nif not isinstance(body, E): pass",
        "BENDING = (ElasticBody,)\nissubclass(type(body), BENDING)",
        "type(body) is ElasticBody",
        "body.__class__ == RigidBody",
        "type(body).__name__ == 'x' or ElasticBody is type(body)",
        "match body:\n    case ElasticBody(m=m): pass",
        "match body:\n    case bodies.RigidBody(): pass",
        "hasattr(link.body, 'K')",
        "getattr(body, 'K', None)",
    ],
)
def test_each_way_to_ask_for_the_kind_of_a_body_is_seen(line):
    assert len(list(decisions_by_kind(ast.parse(line)))) == 1


def test_making_a_body_is_no_question_for_its_kind():
    assert not list(decisions_by_kind(ast.parse("body = RigidBody()\nif body.size == 0: isinstance(x, int)")))


@pytest.mark.parametrize("kind", [RigidBody, ElasticBody])
def test_every_kind_of_body_answers_the_same_questions(kind):
    for name, question in vars(Body).items():
        if name.startswith("_"):
            continue
        if isinstance(question, property):
            assert name in kind.__dataclass_fields__ or hasattr(kind, name), name
            continue
        asked, answered = (inspect.signature(method).parameters for method in (question, getattr(kind, name)))
        assert list(asked) == list(answered), name


# -- joints -------------------------------------------------------------------------------------------------


RECOGNISED = {  # modules that may ask for the kind of a joint: what they do not know they leave to others
    "closure/closed_form.py": "closed forms of known legs; others are solved by Newton",
    "closure/drives.py": "a motor behind a spring on one axis; others are no elastic drives",
    "exchange/mjcf.py": "kinds that MuJoCo has",
    "exchange/urdf.py": "kinds that URDF has",
    "models/dynamics/base_parameters.py": "rules of grouping; the rank finds the rest",
    "models/explaining/explain.py": "words",
    "models/forms/in_pieces/piece_bodies.py": "bodies that are fixed to others",
    "models/forms/in_pieces/pieces.py": "hinges whose unknowns are absolute; others keep their own",
    "models/forms/leg_form.py": "springs that need an angle",
    "models/forms/on_legs/platform_legs.py": "joints about another axis",
    "models/pose_input.py": "the orientation of a ball joint given by its frame",
    "models/spins.py": "rods between two balls",
    "reproduction/peers.py": "trees that a peer can read",
    "view/figures/robot_figure.py": "markers",
}


def kinds_of_joints(tree: ast.Module) -> Iterator[ast.AST]:
    """Questions for the kind of a joint, in the place of what it can do."""
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr == "kind":
            owner = node.value
            if (isinstance(owner, ast.Attribute) and owner.attr == "joint") or (
                isinstance(owner, ast.Name) and owner.id == "joint"
            ):
                yield node


def test_joints_are_asked_for_what_they_can_do():
    found = {path for path, tree in modules().items() if not path.startswith("tree/") and list(kinds_of_joints(tree))}
    assert found == set(RECOGNISED)


def test_a_question_for_the_kind_of_a_joint_is_seen():
    for line in ('link.joint.kind == "revolute"', 'joint.kind in ("free", "planar")', "f(tree.links[j].joint.kind)"):
        assert len(list(kinds_of_joints(ast.parse(line)))) == 1


# -- frozen objects -----------------------------------------------------------------------------------------


def is_dict(node: ast.AST) -> bool:
    """Whether an expression is the table behind an object: its `__dict__`, or vars of it."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "vars" and bool(node.args)
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def patches(tree: ast.Module) -> Iterator[ast.AST]:
    """Writes into the table behind an object, past its constructor."""
    for node in nodes(tree):
        if isinstance(node, ast.Subscript) and is_dict(node.value) and not isinstance(node.ctx, ast.Load):
            yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # an object may finish itself while it is made
            past = ast.unparse(node.func) == "object.__setattr__" and ast.unparse(node.args[0]) != "self"
            if past or (node.func.attr in WRITERS and is_dict(node.func.value)):
                yield node
        elif isinstance(node, ast.AugAssign) and is_dict(node.target):
            yield node


@pytest.mark.parametrize(
    "line",
    [
        "robot.__dict__['home'] = home",
        "robot.__dict__['n'] += 1",
        "del robot.__dict__['home']",
        "robot.__dict__.setdefault('made', {})",
        "self.robot.__dict__.update(home=home)",
        "robot.__dict__ |= {'home': home}",
        "vars(robot)['home'] = home",
        "object.__setattr__(robot, 'home', home)",
    ],
)
def test_each_way_to_patch_an_object_is_seen(line):
    assert len(list(patches(ast.parse(line)))) == 1


def test_no_object_is_patched_behind_its_constructor():
    assert broken(patches) == []


# -- one definition each --------------------------------------------------------------------------------------


ONE_EACH = {  # the module and the function of what several packages need
    "quintic": ("simulation/inputs/quintics.py", "quintic_powers"),
    "L D L^T": ("spatial/elimination.py", "eliminate"),
    "reader of efforts": ("models/motor_values.py", "read_efforts"),
    "atomic writer": ("whole_files.py", "replacing"),
    "pose to motors": ("simulation/inputs/prescribed_frames.py", "joints_of_pose"),
    "cutting at beams": ("models/cutting.py", "cut_at_beams"),
}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in nodes(tree) if isinstance(node, ast.FunctionDef))


def numbers_in(node: ast.AST) -> set[float]:
    return {
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and type(part.value) in (int, float)
    }


def quintics(tree: ast.Module) -> Iterator[ast.AST]:
    """Functions with the coefficients of a step from rest to rest, or of its second derivative."""
    yield from (f for f in functions(tree) if {10, 15, 6} <= numbers_in(f) or {60, 180, 120} <= numbers_in(f))


def eliminations(tree: ast.Module) -> Iterator[ast.AST]:
    """A reciprocal in a loop over pivots, and in the same loop an entry less a product of two entries."""
    for loop in (node for f in functions(tree) for node in f.body if isinstance(node, (ast.For, ast.While))):
        parts = list(ast.walk(loop))
        divided = any(
            isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and numbers_in(n.left) == {1.0} for n in parts
        )
        less = any(
            isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and isinstance(n.right, ast.BinOp)
            and isinstance(n.right.op, ast.Mult) and isinstance(n.right.left, ast.Subscript)
            and isinstance(n.right.right, ast.Subscript)
            for n in parts
        )  # fmt: skip
        if divided and less:
            yield loop


def readers_of_efforts(tree: ast.Module) -> Iterator[ast.AST]:
    """Functions of the name, and the refusal of joints that are no motors."""
    yield from (f for f in functions(tree) if f.name == "read_efforts")
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "not an actuated joint" in node.value:
            yield node


def writers(tree: ast.Module) -> Iterator[ast.AST]:
    """Files that are opened to be written, temporary ones, and those that take the place of others."""
    for node in nodes(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, words = node.func.attr, [a.value for a in node.args if isinstance(a, ast.Constant)]
        words += [k.value.value for k in node.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)]
        opened = name in ("open", "fdopen") and any(isinstance(w, str) and set(w) & set("wxa") for w in words)
        moved = name in ("replace", "rename") and len(node.args) == 1 and not node.keywords
        moved |= ast.unparse(node.func) in ("os.replace", "os.rename", "shutil.move")
        if opened or moved or name in ("mkstemp", "NamedTemporaryFile", "write_text", "write_bytes"):
            yield node


def leaders(tree: ast.Module) -> Iterator[ast.AST]:
    """Functions that find a pose and then the rates and accelerations of all joints; not from those of motors."""
    for f in functions(tree):
        called = {node.func.attr for node in ast.walk(f) if isinstance(node, ast.Call) and hasattr(node.func, "attr")}
        found = "path_motion" in called or {"assemble", "rates", "accelerations"} <= called
        if found and "actuated_names" not in names_in(f):
            yield f


def cutters(tree: ast.Module) -> Iterator[ast.AST]:
    """Functions of the name, and links gathered into pieces: only the cut makes pieces and steps."""
    yield from (f for f in functions(tree) if f.name == "cut_at_beams")
    for node in nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("CutPiece", "CutStep"):
            yield node


TELL_TALES = {
    "quintic": quintics,
    "L D L^T": eliminations,
    "reader of efforts": readers_of_efforts,
    "atomic writer": writers,
    "pose to motors": leaders,
    "cutting at beams": cutters,
}


@pytest.mark.parametrize("what", ONE_EACH)
def test_there_is_one_definition_of(what):
    path, name = ONE_EACH[what]
    assert name in {f.name for f in functions(modules()[path])}
    assert list(TELL_TALES[what](modules()[path])), "the tell-tale sees the one there is"
    assert broken(TELL_TALES[what], skip=path) == []


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("quintic", "def ease(u):\n    return 10 * u**3 - 15.0 * u**4 + 6 * u**5"),
        ("quintic", "def push(s):\n    return 60 * s - 180 * s**2 + 120 * s**3"),
        (
            "L D L^T",
            "def f(A):\n  for i in r:\n    d = 1.0 / A[i, i]\n    A[j, k] = A[j, k] - L[j] * A[k, i]",
        ),
        ("reader of efforts", "raise InputError(f\"'{name}' is not an actuated joint\")"),
        ("atomic writer", "Path(name).replace(target)"),
        ("atomic writer", "with Path(name).open('wb') as file: pass"),
        ("atomic writer", "handle, name = tempfile.mkstemp()"),
        ("cutting at beams", "parts.append(CutPiece(link, slots, steps))"),
        ("pose to motors", "def f(robot):\n    q = robot.assemble(w)\n    return here.rates(v), here.accelerations(a)"),
    ],
)
def test_a_second_definition_is_seen(what, lines):
    assert list(TELL_TALES[what](ast.parse(lines)))


@pytest.mark.parametrize("user", ["models/forms/in_pieces/pieces.py", "maps/node_unknowns.py"])
def test_programs_and_maps_cut_robots_by_the_one_definition(user):
    called = [ast.unparse(node.func) for node in ast.walk(modules()[user]) if isinstance(node, ast.Call)]
    assert "cut_at_beams" in called


# -- packages -------------------------------------------------------------------------------------------------


MODULES_IN_A_PACKAGE = 15


def packages() -> dict[str, list[str]]:
    """The modules of every package, without its `__init__`."""
    found: dict[str, list[str]] = {}
    for path in modules():
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, [])
        found[folder] += [name.removesuffix(".py")] if name != "__init__.py" else []
    return found


def repeated(names: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that stand in several places."""
    places: dict[str, list[str]] = {}
    for name, place in names:
        places.setdefault(name, []).append(place)
    return {name: where for name, where in places.items() if len(where) > 1}


def test_a_package_has_few_modules():
    assert {name: len(inside) for name, inside in packages().items() if len(inside) > MODULES_IN_A_PACKAGE} == {}


def test_every_package_says_what_is_in_it():
    assert [
        path for path, tree in modules().items() if path.endswith("__init__.py") and not ast.get_docstring(tree)
    ] == []


def test_no_module_or_package_has_the_name_of_another():
    inside = [(name, folder) for folder, names in packages().items() for name in names]
    folders = [(folder.rpartition("/")[2], folder) for folder in packages() if folder]
    assert repeated(iter(inside + folders)) == {}


def test_no_public_class_has_the_name_of_another():
    classes = (
        (node.name, path)
        for path, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert repeated(classes) == {}


def test_repeated_names_are_seen():
    assert repeated(iter([("Leg", "a"), ("Leg", "b"), ("Arm", "a")])) == {"Leg": ["a", "b"]}


# -- one choice of form ---------------------------------------------------------------------------------------


@cache
def form_classes() -> set[str]:
    """Classes of forms, by what they are made from: all but the one that says what a form is."""
    known = {"Form"}
    while True:
        found = {
            node.name
            for tree in modules().values()
            for node in nodes(tree)
            if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & known
        }
        if found <= known:
            return known - {"Form"}
        known |= found


def forms_named(tree: ast.Module) -> Iterator[ast.AST]:
    """Classes of forms by name, imported or behind a dot."""
    known = form_classes()
    for node in nodes(tree):
        if isinstance(node, (ast.Name, ast.Attribute, ast.ImportFrom)) and names_in(node) & known:
            yield node


def test_the_forms_are_those_that_are_known():
    assert form_classes() == {"GeneralForm", "OpenForm", "LegForm", "NodeForm", "RedundantForm"}


def test_the_class_of_a_form_is_named_in_the_package_of_forms_alone():
    assert broken(forms_named, skip="models/forms/") == []


@pytest.mark.parametrize(
    "line",
    ["from parflex.models.forms.leg_form import LegForm", "isinstance(form, forms.GeneralForm)", "NodeForm(robot)"],
)
def test_each_way_to_name_the_class_of_a_form_is_seen(line):
    assert list(forms_named(ast.parse(line)))
