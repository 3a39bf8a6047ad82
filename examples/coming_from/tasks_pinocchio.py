"""The ten tasks of docs/coming-from.md in Pinocchio 4; run it in this folder."""

import numpy as np
import pinocchio as pin
from five_bar_pinocchio import MOTORS, closed, closed_accelerations, data, eye, model, reduction, tip
from scipy.linalg import eigh

# 1. Load a model and close a loop
ends = [(model.frames[k].parentJoint, model.frames[k].placement) for k in (tip, eye)]
loop = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends[0], *ends[1], pin.LOCAL)
loops, loop_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
loops.append(loop)
loop_data.append(loop.createData())
pin.initConstraintDynamics(model, data, loops, loop_data)
freedoms = model.nv - 2  # one of the three rows of the constraint is empty in the plane

# 2. Coordinates and their order
names = list(model.names)[1:]  # the first is "universe"
motors = [names[k] for k in MOTORS]
sizes = model.nq, model.nv

# 3. Set a pose, forward kinematics
q = closed(2.1, 1.0)
pin.framesForwardKinematics(model, data, q)
position = data.oMf[tip].translation

# 4. Jacobian of a frame
N = reduction(q)
J = pin.computeFrameJacobian(model, data, q, tip, pin.LOCAL_WORLD_ALIGNED)[:3] @ N


# 5. Inverse dynamics
def inverse(q, rates, accelerations):
    """Return the motor torques: those of the tree, projected onto the closed robot."""
    N = reduction(q)
    v = N @ rates
    return N.T @ pin.rnea(model, data, q, v, closed_accelerations(q, v, accelerations))


effort = inverse(q, [1.0, -0.5], [2.0, 1.0])

# 6. Forward dynamics and constraint forces
torques = np.zeros(4)
torques[MOTORS] = effort
accuracy = pin.ProximalSettings(1e-12, 1e-10, 20)  # the third row of the loop is redundant
v = N @ [1.0, -0.5]
qdd = pin.constraintDynamics(model, data, q, v, torques, loops, loop_data, accuracy)[MOTORS]
force = data.oMf[tip].rotation @ loop_data[0].contact_force.linear

# 7. Mass matrix
M = N.T @ pin.crba(model, data, q) @ N
energy = np.array([1.0, -0.5]) @ M @ [1.0, -0.5] / 2

# 8. Natural frequencies: linearise yourself
frequencies = np.sqrt(eigh(np.diag([200, 200]), M, eigvals_only=True)) / (2 * np.pi)

# 9. Simulate: Runge-Kutta
state = np.zeros((2, 4))
state[0] = q
torques[MOTORS] = [-1, 1]


def change(state):
    """Return the rates and accelerations of a state."""
    return np.array([state[1], pin.constraintDynamics(model, data, *state, torques, loops, loop_data, accuracy)])


for _ in range(200):
    k1 = change(state)
    k2 = change(state + 5e-4 * k1)
    k3 = change(state + 5e-4 * k2)
    state += 1e-3 / 6 * (k1 + 2 * k2 + 2 * k3 + change(state + 1e-3 * k3))
pin.framesForwardKinematics(model, data, state[0])
end = data.oMf[tip].translation[:2]

# 10. Many states, compiled code
left = np.linspace(2.0, 2.2, 5)
efforts = np.array([inverse(closed(angle, 1.0), [1.0, -0.5], [2.0, 1.0]) for angle in left])
