"""The ten tasks of docs/coming-from.md in MuJoCo 4; run it in this folder."""

import mujoco
import numpy as np
from five_bar_mujoco import MOTORS, close, closed_accelerations, data, model, reduction

# 1. Load a model and close a loop
stiff = model.equality("pin").solref  # <connect site1="tip" site2="eye" solref="2e-4 1" .../>
freedoms = model.nv - 2

# 2. Coordinates and their order
names = [model.joint(k).name for k in range(model.njnt)]
motors = [model.actuator(k).name for k in range(model.nu)]
sizes = model.nq, model.nv

# 3. Set a pose, forward kinematics
close(2.1, 1.0)
mujoco.mj_forward(model, data)
position = data.site("tip").xpos

# 4. Jacobian of a frame
N = reduction()
J = np.zeros((3, model.nv))
mujoco.mj_jacSite(model, data, J, None, model.site("tip").id)
J = J @ N


# 5. Inverse dynamics
def inverse(angles, rates, accelerations):
    """Return the motor torques: those of the tree, projected onto the closed robot."""
    close(*angles)
    data.qvel[:] = reduction() @ rates
    mujoco.mj_forward(model, data)
    data.qacc[:] = closed_accelerations(accelerations)
    mujoco.mj_inverse(model, data)
    return reduction().T @ data.qfrc_inverse


effort = inverse([2.1, 1.0], [1.0, -0.5], [2.0, 1.0])

# 6. Forward dynamics and constraint forces
data.ctrl[:] = effort
mujoco.mj_forward(model, data)
qdd = data.qacc[MOTORS]
force = data.efc_force[:3]

# 7. Mass matrix
MN = np.zeros((2, model.nv))
for product, column in zip(MN, N.T, strict=True):
    mujoco.mj_mulM(model, data, product, np.ascontiguousarray(column))
M = MN @ N
energy = np.array([1.0, -0.5]) @ M @ [1.0, -0.5] / 2

# 8. Natural frequencies: eigenvalues of one time step
data.qvel[:], data.ctrl[:], model.opt.gravity[:] = 0, 0, 0
model.jnt_stiffness[MOTORS] = 200
model.qpos_spring[:] = data.qpos
A = np.zeros((2 * model.nv, 2 * model.nv))
mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)
rates = np.log(np.linalg.eigvals(A).astype(complex)) / model.opt.timestep
frequencies = np.sort(rates.imag[(rates.imag > 1) & (rates.real > -1)]) / (2 * np.pi)  # not those of the soft pin

# 9. Simulate
model.opt.gravity[:] = [0, -9.81, 0]
model.jnt_stiffness[:] = 0
mujoco.mj_resetData(model, data)
close(2.1, 1.0)
data.ctrl[:] = [-1, 1]
while data.time < 0.2 - 1e-9:
    mujoco.mj_step(model, data)
mujoco.mj_forward(model, data)
end = data.site("tip").xpos[:2]

# 10. Many states, compiled code
left = np.linspace(2.0, 2.2, 5)
efforts = np.array([inverse([angle, 1.0], [1.0, -0.5], [2.0, 1.0]) for angle in left])
