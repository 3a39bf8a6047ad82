"""The numbered equations of docs/theory.md, for texts about one robot; a test keeps both the same."""

from __future__ import annotations

EQUATIONS: dict[int, str] = {
    1: "Rot(z, gamma) Trans(z, b) Rot(x, alpha) Trans(x, d) Rot(z, theta) Trans(z, r)",
    2: "dP/dt = R v        dQ/dt = Q (0, w) / 2",
    3: "\n".join(
        [
            "f = m (a - g) + al x S + w x (w x S)",
            "m = S x (a - g) + I al + w x (I w)",
        ]
    ),
    4: "\n".join(
        [
            "v_j  = X (v_i + w_i x p) + S_v qd",
            "w_j  = X w_i + S_w qd",
        ]
    ),
    5: "\n".join(
        [
            "a_j  = X (a_i + al_i x p + w_i x (w_i x p)) + S_v qdd + 2 (X w_i) x (S_v qd)",
            "al_j = X al_i + S_w qdd + (X w_i) x (S_w qd)",
        ]
    ),
    6: "\n".join(
        [
            "force along the rates of j:  S_v^T f_j + S_w^T m_j",
            "f_i += R f_j        m_i += R m_j + p x (R f_j)",
        ]
    ),
    7: "IA qdd + FV qd + FS sign(qd) + offset + k (q - q0) + damper qd",
    8: "f_tot = M_tot qdd_tot + c_tot",
    9: "\n".join(
        [
            "             position     velocity           acceleration",
            "translation  n.rho = 0    n.rel = 0          n.(a2 - a1 - al1 x rho - w1 x (w1 x rho) - 2 w1 x rel) = 0",
            "rotation                  n.(w2 - w1) = 0    n.(al2 - al1 - w1 x (w2 - w1)) = 0",
        ]
    ),
    10: "\n".join(
        [
            "u1.u2 = 0",
            "(u2 x u1).(w2 - w1) = 0",
            "(u2 x u1).(al2 - al1) + ((w2 x u2) x u1 + u2 x (w1 x u1)).(w2 - w1) = 0",
        ]
    ),
    11: "J_tot qd_tot = 0        J_tot qdd_tot + b_star = 0",
    12: "qd_tot = J qd        qdd_tot = J qdd + b",
    13: "J = 1 on independent rows, -J_f^-1 J_0 on dependent ones; b = -J_f^-1 b_star on dependent rows, else 0",
    14: "J^T f_tot = J_a^T tau",
    15: "tau = J_a^-T J^T f_tot",
    16: "tau = f_a + J_a^-T J_o^T f_o        a: rows of the motors, o: all others",
    17: "M qdd = J_a^T tau - c        M = J^T M_tot J        c = J^T (M_tot b + c_tot)",
    18: "J_tot^T lam = f_tot - (tau in the rows of the motors)",
    19: "J_i qd_i = v + w x r_i        J_i qdd_i = a + al x r_i + w x (w x r_i) - b_i",
    20: "f_i = J_i^-T H_i        what leg i takes from the platform, at its end",
    21: "B tau = F_p + sum (f_i; r_i x f_i)        B: columns (h; r_i x h), h = J_i^-T e_motor",
    22: "A = A_p + sum J_pi^T M_i J_pi        J_pi = J_i^-1 [1, -hat(r_i)]",
    23: "U = I_A S    D = S^T U + IA    u = tau - S^T p_A    I_A' = I_A - U D^-1 U^T    p_A' = p_A + I_A' c + U D^-1 u",
    24: "f   = m a + U S + 2 w x (sum e_dot_k S_k) + sum e_ddot_k S_k",
    25: "m   = S x a + axial(U Sigma + 2 hat(w) P^T + Q^T)",
    26: "s_k = S_k . a + <U, int phi_k r^T> + 2 <hat(w), int phi_k rd^T> + sum_j tr(G_kj) e_ddot_j + (K e + D e_dot)_k",
    27: "u = Phi_d e        R = exp(hat(th)), th = Phi_r e        u_dot = Phi_d e_dot, w = L(th) Phi_r e_dot",
    28: "M = J^T M_tot J        K = J^T K_tot J        D = J^T D_tot J        K v = omega^2 M v",
    29: "e_dot  = Lb^-1 (t_B - T t_A)",
    30: "e_ddot = Lb^-1 (td_B - T td_A - h)    h = [w x (w x r_B) + 2 w x e_d_dot; w x (L e_r_dot) + L_dot e_r_dot]",
    31: "A x + f = forces of the motors        A = sum int N^T N, over beams and bodies",
    32: "S_a = sum_n m_n f_a(n)        G_ab = sum_n (m_n f_a f_b^T + C_a Sigma_n C_b^T)",
    33: "M_y = (P^T M_ee^-1 P)^-1        L = M_ee^-1 P M_y        Pi = M_ee^-1 - L P^T M_ee^-1",
    34: "M_y y + L^T (A_re^T Vd + s) = f        edd = L y - Pi (A_re^T Vd + s)",
    35: "J_sys^-T = (J_x M^-1 J_x^T)^-1 J_x M^-1 J_a^T",
    36: "P M Z ydd + P D Z yd + P K Z y = 0",
    37: "u_m = u_x + 1/2 e^T H e        e^T H e = int_0^L (v'^2 + w'^2) dx",
    38: "U = 1/2 e^T K_0 e + EA/(2 L) u_m^2        N = EA/L u_m\ns = K_0 e + D_0 e_dot + (N + c u_m_dot) du_m/de",
    39: "qdd = -J^+ b_star + N z        N^T M N z = N^T (f - M (-J^+ b_star))",
    40: "min 1/2 d^T d  subject to  c(q) = g          grad(1/2 d^T d) + J^T lambda = 0",
    41: "v = v_g + Z y          (Z^T H Z) y = -Z^T H v_g",
    42: "q_j - sum_k rho_k q_k = offset        rho = lead/(2 pi) for a screw",
    43: "d = q_j - sum_k rho_k q_k - offset        s = k d + c d_dot        j: s        k: -rho_k s",
    44: "t = k (l - l_0) + c l_dot        f_1 = t u        f_2 = -t u        u = (p_2 - p_1)/l",
    45: "|p_2 - p_1| = l_0        |p_2 - p_1| = q_s for a strut",
    46: "tau_g = W^-1 A^T (A W^-1 A^T)^-1 g",
    47: "[A; S] tau_0 = [0; e]        S: rows of the unit matrix for the motors with the stated efforts e",
    48: "tau = tau_g + tau_0 + N z        min z^T z  subject to  lower <= tau <= upper",
    49: "-rho_k (1 + mu) lambda        mu = sigma ((a - b) sigma + sign(lambda) (a + b))/2\na = 1/eta - 1        "
    "b = 1 - eta_b        sigma = v/sqrt(v^2 + w^2)        v = sum_k rho_k q_k_dot",
    50: "K = V'' + J_a^T K_s J_a - sum_k tau_k q_ak''",
    51: "s = max(k d + c d_dot, 0)  where  d > 0",
    52: "f = f_t - sum f_l + m a + sum B_a S_a\nm = m_t - sum m_l + S x a + axial(sum B_a G_ab c_b) - r x f",
    53: "(N, Vy, Vz) = -R^T f        (T, My, Mz) = -R^T m        R = exp(hat(Phi_r e))",
    54: "|N|/A + |My| z/Iy + |Mz| y/Iz        round: |N|/A + sqrt(My^2 + Mz^2) rho/I",
    55: "u = T b + sum_{j<=k} phi_j q_j        K phi_j = mu_j M phi_j  with both ends held",
    56: "lambda <= lambda_k <= lambda mu/(mu - lambda)        f_k - f <= f (1/sqrt(1 - f^2/f_mu^2) - 1)",
    57: "(M + J_s^T H J_s) qdd + c + J_s^T (lam + H b_s) = J_a^T tau        lam <- lam + H (J_s qdd + b_s)",
    58: "(1 - h mu Jv - h^2 mu^2 Jq) d_mu = (T^-1 m)_mu        da_i = sum T_i,mu d_mu",
    59: "d = m - P (A + c1 D + c2 K)^-1 (c1 D + c2 K) E m        c1 = h mu        c2 = h^2 mu^2",
    60: "r(q, p) = 0        t(q, p) = 0        dq/dp = -[r_q; t_q]^-1 [r_p; t_p]",
    61: "dlambda/dp = d/dp [psi^T K psi - lambda psi^T M psi]        psi^T M psi = 2 T(q, psi)",
    62: "C = P K^-1 P^T:    dC/dp = d/dp [P Psi + Psi^T P^T - Psi^T K Psi]        Psi = J K^-1 P^T",
    63: "J^T d(F - J_tot^T lam) = 0 for constant lam        r(q, p) = 0",
    64: "d/dp min_i f_i(p) along dp = min over active i of df_i/dp dp",
    65: "J_v^T U e_i + J_w^T (e_i x a)",
    66: "max t    f_i + u^T (sum_k A_ik dp_k) u >= t  for all u, |u| = 1        |dp| <= trust",
    67: "X = [1, -hat(p); 0, 1] per node, 0 per mode    X^T M X = [m, -m hat(c); m hat(c), I]    K X = 0",
    68: "T = 1/2 V^T M V  at e = 0        V = X (v, w) + E e_dot",
    69: "phi_a = t_a + B_a (r - c) + psi_a        B_a = hat(th_a) + Z_a Sigma_c^-1\n"
    "S_a = m t_a        G_0a = m c t_a^T + Sigma_c B_a^T\n"
    "G_ab = m t_a t_b^T + B_a Sigma_c B_b^T + W_ab/3",
    70: "u_m = f . e/k + 1/2 e^T (K_G/k) e        k = f . K^-1 f        N = k u_m",
    71: "rho = s + delta   delta = w^T b / w^T N w   r^2 = c / w^T N w - delta^2   c = max(1, (p - s)^2 / (p - s')^2)",
    72: "|lambda - rho| <= epsilon + tau^2 / (p - s - tau)        tau = 1.1 (|delta| + epsilon) <= 0.1 (p - s)",
    73: "eta = -K_ii^-1 M_ib xdd        f = -M_bi eta_ddot = C d2(xdd)/dt2        C = M_bi K_ii^-1 M_ib\n"
    "m z_ddot + d z_dot + k z = c_ddot,  c = x^T C qdd        m z = c - int_0^t (k h + d h_dot)(t - s) c(s) ds\n"
    "m = 1 + x^T C x k/m",
}
