"""What the words of arguments mean, once: docstrings and the help of the command line say it in these words.

A word has its type, its unit (none where it is a name, a count or a flag) and a sentence; functions may say more of it.
"""

from __future__ import annotations

from typing import NamedTuple


class Word(NamedTuple):
    """Type, unit and meaning of an argument."""

    kind: str
    unit: str
    text: str


SI = "m, rad"
WORDS: dict[str, Word] = {
    "robot": Word("Robot", "", "Robot, from `load`."),
    "source": Word("str or Path", "", "Name of a robot of the catalogue, or path of a robot file."),
    "settings": Word("Mapping[str, Any]", "", "Values of the file by dotted path, e.g. {'constants.arm': 0.3}."),
    "payload": Word("Sequence[float]", "kg, m", "Point mass on the end effector: mass, x, y, z in its axes."),
    "actuation": Word("str", "", "Actuation of the file."),
    "working_mode": Word("str", "", "Working (assembly) mode of the file."),
    "elements": Word("int", "", "Elements that every element of every beam is divided into."),
    "rigid": Word("bool", "", "Replace flexible bodies by rigid ones of the same mass, centre of mass and inertia."),
    "converge": Word(
        "float",
        "dimensionless",
        "Divide the elements of beams until the answer changes by no more than this share of it.",
    ),
    "pose": Word("Pose", SI, "Name of a pose of the file, coordinates by name, or a configuration."),
    "poses": Word("Sequence", SI, "Poses one after the other."),
    "coordinates": Word("str or Sequence[str]", "", "A set of coordinates, or coordinates by name."),
    "velocity": Word("Mapping[str, float]", "m/s, rad/s", "Velocities by name; frames in world axes."),
    "acceleration": Word("Mapping[str, float]", "m/s^2, rad/s^2", "Accelerations by name; frames in world axes."),
    "q": Word("Array", SI, "All positions, in the order of `robot.coordinates`; with a leading axis a batch."),
    "qd": Word("Array", "m/s, rad/s", "Rates, in the order of `robot.rates` or of `robot.independent`."),
    "qdd": Word("Array", "m/s^2, rad/s^2", "Accelerations, in the same order."),
    "effort": Word("Effort", "N, N m", "Efforts of the motors, by name or in their order; a motor not named has none."),
    "wrench": Word(
        "Wrench", "N, N m", "Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz]."
    ),
    "wrench_frames": Word("Sequence[str]", "", "Frames with a wrench as an input of the model."),
    "without": Word(
        "Sequence[str]",
        "",
        "Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, "
        "axial.",
    ),
    "include": Word("Sequence[str]", "", "The only joint terms that act: friction, motor-inertia, springs."),
    "reactions": Word("bool", "", "Also compute the wrench in every joint and closure."),
    "form": Word("{'split', 'projected'}", "", "Theory (16), or theory (15) with all rows projected."),
    "frame": Word("str", "", "Name of the frame; None is the end effector."),
    "frames": Word("Sequence[str]", "", "Frames to report; by default the end effector."),
    "lock": Word("Lock", "", "Locked joints: 'actuators', 'none' or names."),
    "about": Word(
        "{'undeformed', 'equilibrium'}",
        "",
        "State of linearisation; None is the equilibrium under a wrench or efforts or where springs are under tension, "
        "else the undeformed pose.",
    ),
    "servo": Word("float or Mapping[str, float]", "N/m, N m/rad", "Stiffness of motors held by springs."),
    "servo_damping": Word("float or Mapping[str, float]", "N s/m, N m s/rad", "Damping of the servos."),
    "modes": Word("int", "", "Number of modes."),
    "mode": Word("int", "", "Mode, counted from 1, the lowest."),
    "shapes": Word("bool", "", "Also compute mode shapes."),
    "designs": Word(
        "Mapping[str, Sequence[float]]", "", "Numbers of the robot file by dotted path, one for each pose."
    ),
    "responses": Word(
        "Sequence[str]", "", "What is asked: 'frequency:K', 'stiffness:FRAME.x', 'deflection:FRAME', ..."
    ),
    "threads": Word("int", "", "Number of threads."),
    "csv": Word("bool", "", "Write a CSV file too."),
    "response": Word("str", "", "Name of a response, a colon, and what it is of."),
    "keys": Word("Sequence[str]", "", "Keys of the robot file by dotted path, each of one number."),
    "tolerances": Word("Mapping[str, float]", "", "Standard deviations of keys, in their units."),
    "statistic": Word("str", "", "'mean', or a quantile from 0 to 1 as text."),
    "function": Word("Callable", "", "Function of a state and of the text behind the colon."),
    "unit": Word("str", "", "Unit of the number."),
    "help": Word("str", "", "One sentence on what it is."),
    "worst": Word("{'smallest', 'largest'}", "", "Which of many poses counts."),
    "found": Word("Sensitivities", "", "Sensitivities, from `sensitivities`."),
    "inputs": Word("Sequence[str]", "", "JOINT (its effort) or FRAME.fx ... FRAME.mz (force or moment, world axes)."),
    "outputs": Word(
        "Sequence[str]",
        "",
        "Coordinates or FRAME.x ... FRAME.rz; with velocity: or acceleration: in front their derivatives. In runs "
        "reaction.JOINT.fx.",
    ),
    "over": Word("Sequence[tuple]", SI, "Axes of the grid: (coordinate, first, last, count)."),
    "fixed": Word("Mapping[str, float]", SI, "Coordinates that are the same everywhere."),
    "frequency_map": Word("FrequencyMap", "", "Map, from `frequency_map`."),
    "out": Word("str or Path", "", "File that keeps results; a later call with it continues there."),
    "path": Word("str or Path", "", "File."),
    "loops": Word("str or Path", "", "YAML file beside a URDF, with its loops and motors."),
    "end_effector": Word(
        "str",
        "",
        "Link or joint of a URDF that is the end effector; None is the only moving link that carries no other.",
    ),
    "closed": Word("bool", "", "Of the closed robot, not of its open tree of legs and platform."),
    "floating": Word("bool", "", "The root of a URDF is a free body, not fixed to the ground."),
    "agreement": Word("float", "dimensionless", "MAC from which two shapes are one mode."),
    "finest": Word("float", "dimensionless", "Smallest share of the way between two poses."),
    "samples": Word("int", "", "Random states from which ranks are found."),
    "steps": Word("int", "", "Largest number of Newton steps."),
    "sensed": Word("Sequence[str]", "", "Passive joints with sensors; None: those of the file."),
    "values": Word("Sequence[float]", SI, "Measured positions of motors and sensed joints, in this order."),
    "near": Word("Array", SI, "All positions of a pose nearby; None is home."),
    "name": Word("str", "", "Model: inverse, direct, mass-matrix, kinematics, geometry, step, ..."),
    "parameters": Word("str or Sequence[str]", "", "'numbers', 'base' (base parameters as symbols) or names."),
    "independent": Word("Sequence[str]", "", "Rates that are integrated; by default those that the model chooses."),
    "rows": Word("Sequence[int]", "", "Closure rows that determine the dependent rates; () leaves the choice."),
    "checks": Word("bool", "", "Also output how far the inputs are from closed, and a condition number."),
    "operator_limit": Word("int", "", "Longest program, in operators."),
    "friction_width": Word("float", "rad/s, m/s", "Rate over which Coulomb friction changes its sign."),
    "ignore_limits": Word("bool", "", "Do not check the limits of the robot file."),
    "stops": Word("bool", "", "Let the limits of joints act, by the `stop` of the robot file."),
    "check_width": Word(
        "bool", "", "Run again with half the friction width, where there is one, and report the difference."
    ),
    "check_steps": Word("bool", "", "Run again with half the steps and report the error that follows."),
    "motion": Word(
        "str, Path, Mapping or callable",
        SI,
        "Motion: name in the file, motion file, table, table of knots, or function of time.",
    ),
    "plan": Word("MotorMotion", "", "Time-optimal motion, from `plan_motion`."),
    "time": Word("float", "s", "Duration."),
    "step": Word("float", "s", "Integration step."),
    "out_step": Word("float", "s", "Time between rows of the result."),
    "sample_time": Word("float", "s", "Sample time of the control law."),
    "controller": Word("Controller", "N, N m", "Controller called at its sample time, e.g. `PD`."),
    "drive": Word("{'motors', 'platform'}", "", "What follows the motion."),
    "start": Word("str or Mapping", "", "State at the start."),
    "fmi": Word("int", "", "Version of FMI: 2 or 3."),
    "kind": Word("str", "", "Co-simulation (cs) or model exchange (me)."),
    "platforms": Word("str", "", "Libraries for this machine (own), or for all platforms (all)."),
    "method": Word("str", "", "Integrator: gauss4, gauss6, rk4, dopri5 or generalized-alpha."),
    "tolerance": Word("float", "m", "What positions may err by in a step, angles times the typical length."),
    "radius": Word("float", "dimensionless", "Spectral radius of generalized-alpha: 1 damps nothing, 0 most."),
    "progress": Word("callable", "", "Called with the progress at intervals."),
    "reference": Word("str, Mapping, Reference or callable", SI, "Reference of the end effector."),
    "law": Word("{'pd', 'ctc', 'ctc-task', 'extended'}", "", "Control law."),
    "model": Word("str", "", "Name of a model, as in `model`."),
    "plant": Word("Robot", "", "Robot that moves; None: the robot itself."),
    "overshoot": Word("float", "dimensionless", "Overshoot of a step of the error; 0.1 is 10 %."),
    "peak_time": Word("float", "s", "Time of the peak of such a step."),
    "Kp": Word("float", "1/s^2", "Gain on errors, in place of overshoot and peak time."),
    "Kv": Word("float", "1/s", "Gain on error rates; goes with `Kp`."),
    "compensate": Word("Sequence[str]", "", "Joint terms the law knows: motor-inertia, springs, friction."),
    "delay": Word("int", "", "Samples from sensing to effort."),
    "noise": Word("float", SI, "Standard deviation of measured positions."),
    "rate_noise": Word("float", "m/s, rad/s", "Standard deviation of measured rates."),
    "resolution": Word("float", SI, "Resolution of position sensors."),
    "rates": Word("{'measured', 'differences'}", "", "Source of the rates: sensors, or differences of positions."),
    "effort_limit": Word("float or Mapping[str, float]", "N, N m", "Largest effort of all motors, or of each."),
    "weights": Word(
        "Mapping[str, float]",
        "",
        "Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.",
    ),
    "preload": Word("Mapping[str, float]", "N, N m", "Internal efforts by motor, of one motor for each that is spare."),
    "velocity_limit": Word("float or Mapping[str, float]", "m/s, rad/s", "Largest velocity of all motors, or of each."),
    "acceleration_limit": Word(
        "float or Mapping[str, float]", "m/s^2, rad/s^2", "Largest acceleration of all motors, or of each."
    ),
    "seed": Word("int", "", "Seed of the noise."),
    "study": Word("StudyFile, str or Path", "", "Study, or path of its file."),
    "jobs": Word("int", "", "Processes side by side; None: one per core."),
    "cluster": Word("str", "", "Address of a Dask scheduler whose workers compute; None: this machine."),
    "executor": Word("Executor", "", "Executor of `concurrent.futures` that computes."),
    "bench": Word("Bench", "", "Compiled laws and plants from an earlier call."),
    "paper": Word("str", "", "Key of a paper; None: all."),
    "quick": Word("bool", "", "Leave out simulations, studies and times."),
    "refined": Word("Modes or Run", "", "Answer of `natural_frequencies` or `simulate` with `converge`."),
    "run": Word("Run or Mapping[str, Array]", "", "Columns by name, with time 't' in s."),
    "measured": Word("Run or Mapping[str, Array]", "", "Measured columns by name, with time 't' in s."),
    "columns": Word("Sequence[str]", "", "Columns to show; None: end effector, efforts and energies."),
    "record": Word(
        "str, Path, Mapping[str, Array] or Sequence", "", "A record, or several: files, or columns by name."
    ),
    "validate": Word("str, Path, Mapping[str, Array] or Sequence", "", "Records on which efforts are predicted."),
    "estimator": Word("str", "", "Method of estimation."),
    "cutoff": Word("float", "Hz", "Cutoff frequency of the low-pass of positions."),
    "decimate": Word("int", "", "Every so many samples one is kept."),
    "least_speed": Word("float", "m/s, rad/s", "Samples of motors with Coulomb friction that are slower are left out."),
    "friction": Word("str", "", "Friction of motors that is looked for."),
    "vary": Word("Sequence[str]", "", "Keys of the robot file by dotted path, each of one number."),
    "hold_out": Word("Sequence[str]", "", "What is predicted and not used: 'POSE', 'POSE:MODE' or ':MODE'."),
    "prior": Word(
        "float or Mapping[str, float]", "dimensionless", "Deviation before anything is measured, as share of a number."
    ),
    "harmonics": Word("int", "", "Harmonics of a Fourier series."),
    "workspace": Word(
        "Mapping[str, Sequence[float]]", "m", "Lowest and highest place of the end effector by direction."
    ),
    "distance": Word("float", "dimensionless", "Least distance to singular poses: 1 at home, 0 at singular poses."),
    "starts": Word("int", "", "Number of random starts."),
    "keep_spikes": Word("bool", "", "Leave single samples that are far from their neighbours as they are."),
    "keep": Word(
        "Sequence[str] | str", "", "Joints, elements and couplings whose springs and dampers are those of the file."
    ),
    "physical": Word("bool", "", "Let all parameters be those of bodies that can be."),
    "instant": Word("float", "s", "Time at which the beam is drawn."),
    "title": Word("str", "", "Title of the figure."),
    "natural": Word("Array", "Hz", "Natural frequencies, drawn as thin lines."),
    "highest": Word("float", "Hz", "Highest frequency drawn."),
    "amplitude": Word("float", "dimensionless", "Largest displacement as a share of the robot's size."),
}
