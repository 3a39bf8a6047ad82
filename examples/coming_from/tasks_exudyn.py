"""The ten tasks of docs/coming-from.md in Exudyn 1.13; run it in this folder."""

import exudyn as exu
import exudyn.itemInterface as eii  # noqa: N813
import numpy as np
from five_bar_exudyn import FiveBar, settings

# 1. Load a model and close a loop
robot = FiveBar()  # ObjectJointRevolute2D for each of the five hinges
robot.mbs.Assemble()
freedoms = 4 * 3 - 5 * 2

# 2. Coordinates and their order
q = robot.mbs.systemData.GetODE2Coordinates()  # x, y, angle of each body, from its reference
names = ["left", "left-rod", "right", "right-rod"]  # bodies in the order of creation
motors = [names[node] for node in robot.cranks]

# 3. Set a pose, forward kinematics
robot = FiveBar((2.1, 1.0))
robot.mbs.Assemble()
position = robot.mbs.GetMarkerOutput(robot.tip, exu.OutputVariableType.Position)

# 4. Jacobian of a frame: no such function; velocities at unit rates are its columns
columns = []
for rates in ((1, 0), (0, 1)):
    moving = FiveBar((2.1, 1.0), rates)
    moving.mbs.Assemble()
    columns.append(moving.mbs.GetMarkerOutput(moving.tip, exu.OutputVariableType.Velocity))
J = np.column_stack(columns)


# 5. Inverse dynamics
def inverse(angles, rates, accelerations):
    """Return the motor torques of a prescribed motion, after a few steps that damp the transient."""
    robot = FiveBar(angles, rates)
    drives = []
    for k in (0, 1):

        def motion(mbs, t, item, offset, k=k):
            return rates[k] * t + accelerations[k] * t**2 / 2

        markers = [robot.fixed(), robot.angle(k)]
        drive = eii.ObjectConnectorCoordinate(markerNumbers=markers, offsetUserFunction=motion)
        drives.append(robot.mbs.AddObject(drive))
    robot.mbs.Assemble()
    short = settings(end=1e-4, steps=10)
    short.timeIntegration.generalizedAlpha.spectralRadius = 0
    robot.mbs.SolveDynamic(short)
    return np.array([-robot.mbs.GetObjectOutput(drive, exu.OutputVariableType.Force) for drive in drives])


effort = inverse((2.1, 1.0), (1.0, -0.5), (2.0, 1.0))

# 6. Forward dynamics and constraint forces: accelerations after one short step
robot = FiveBar((2.1, 1.0), (1.0, -0.5))
for motor in (0, 1):
    robot.mbs.AddLoad(eii.LoadCoordinate(markerNumber=robot.angle(motor), load=effort[motor]))
robot.mbs.Assemble()
robot.mbs.SolveDynamic(settings(end=1e-5, steps=1))
qdd = robot.mbs.systemData.GetODE2Coordinates_tt()[[2, 8]]
force = np.append(robot.mbs.systemData.GetAECoordinates()[-2:], 0)  # multipliers of the last hinge

# 7. Mass matrix
robot = FiveBar((2.1, 1.0), (1.0, -0.5))
robot.mbs.Assemble()
M, K, D = robot.mbs.ComputeLinearizedSystem()
v = robot.mbs.systemData.GetODE2Coordinates_t()
energy = v @ M @ v / 2

# 8. Natural frequencies
robot = FiveBar((2.1, 1.0), gravity=0)
for motor in (0, 1):
    markers = [robot.fixed(), robot.angle(motor)]
    robot.mbs.AddObject(eii.ObjectConnectorCoordinateSpringDamper(markerNumbers=markers, stiffness=200))
robot.mbs.Assemble()
frequencies = np.sort(robot.mbs.ComputeODE2Eigenvalues(convert2Frequencies=True)[0])

# 9. Simulate
robot = FiveBar((2.1, 1.0))
for motor, torque in ((0, -1.0), (1, 1.0)):
    robot.mbs.AddLoad(eii.LoadCoordinate(markerNumber=robot.angle(motor), load=torque))
robot.mbs.Assemble()
robot.mbs.SolveDynamic(settings(end=0.2, steps=2000))
end = np.array(robot.mbs.GetMarkerOutput(robot.tip, exu.OutputVariableType.Position))[:2]

# 10. Many states, compiled code
left = np.linspace(2.0, 2.2, 5)
efforts = np.array([inverse((angle, 1.0), (1.0, -0.5), (2.0, 1.0)) for angle in left])
