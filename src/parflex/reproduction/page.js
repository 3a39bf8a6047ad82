"use strict";
// Modes that move: points at rest plus amplitude times shape. Drag or arrow keys turn, wheel or + and - zoom.
(() => {
  const robots = JSON.parse(document.getElementById("mode-data").textContent);
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const WIDTHS = { beam: 4, plate: 1, platform: 3, slide: 2, sleeve: 4, rail: 1, link: 3 };

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const names = ["rest", "own", "two", "bad", "card", "ink"];
    return Object.fromEntries(names.map((name) => [name, read("--" + name)]));
  }

  function centre(robot) {
    return [0, 1, 2].map((k) => {
      let low = Infinity, high = -Infinity;
      for (const i of robot.edges) { low = Math.min(low, robot.points[3 * i + k]); high = Math.max(high, robot.points[3 * i + k]); }
      return (low + high) / 2;
    });
  }

  function player(box) {
    const canvas = box.querySelector("canvas"), context = canvas.getContext("2d");
    const output = box.querySelector("output"), pause = box.querySelector(".pause");
    const reach = box.querySelector(".reach"), lists = [...box.querySelectorAll(".robot-modes")];
    const names = [...box.querySelectorAll(".robot")];
    let robot = robots[0], middle = centre(robot);
    const state = { mode: 0, turn: 0, tilt: 0, zoom: 1, phase: Math.PI / 2, playing: !still.matches, seen: true };

    function project(x, y, z, scale, width, height) {
      const c = Math.cos(state.turn), s = Math.sin(state.turn), ct = Math.cos(state.tilt), st = Math.sin(state.tilt);
      const u = c * x - s * y, v = s * x + c * y;
      return [width / 2 + scale * u, height / 2 - scale * (v * st + z * ct)];
    }

    function draw() {
      const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
      if (!width) { return; }
      if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      const colour = colours(), shape = robot.modes[state.mode].shape, p = robot.points;
      const scale = state.zoom * 0.86 * Math.min(width, height) / robot.size;
      const amplitude = Number(reach.value) / 100 * robot.size * Math.sin(state.phase);
      const place = (i, a) => project(p[3 * i] - middle[0] + a * shape[3 * i], p[3 * i + 1] - middle[1] + a * shape[3 * i + 1], p[3 * i + 2] - middle[2] + a * shape[3 * i + 2], scale, width, height);
      const size = (i) => Math.hypot(shape[3 * i], shape[3 * i + 1], shape[3 * i + 2]);
      context.lineCap = "round";
      context.fillStyle = colour.rest;
      for (const [i, kind] of robot.joints) { if (kind === "g") { const at = place(i, 0); context.fillRect(at[0] - 8, at[1] - 2, 16, 12); } }
      for (const [a, moving] of [[0, false], [amplitude, true]]) {
        for (const face of moving ? robot.faces : []) {
          context.beginPath();
          for (const i of face) { context.lineTo(...place(i, a)); }
          context.closePath();
          context.globalAlpha = 0.25; context.fillStyle = colour.own; context.fill(); context.globalAlpha = 1;
        }
        for (let e = 0; e < robot.kinds.length; e++) {
          const i = robot.edges[2 * e], j = robot.edges[2 * e + 1];
          const first = place(i, a), second = place(j, a);
          context.beginPath();
          context.moveTo(first[0], first[1]);
          context.lineTo(second[0], second[1]);
          context.lineWidth = moving ? WIDTHS[robot.kinds[e]] || 2 : robot.kinds[e] === "plate" ? 0.4 : 1.2;
          context.strokeStyle = moving ? colour.own : colour.rest;
          context.stroke();
          const share = moving ? (size(i) + size(j)) / 2 : 0;
          if (share > 0.02) { context.globalAlpha = Math.min(1, share); context.strokeStyle = colour.two; context.stroke(); context.globalAlpha = 1; }
        }
      }
      for (const [i, kind] of robot.joints) {
        if (kind === "g") { continue; }
        context.beginPath();
        context.arc(...place(i, amplitude), kind === "m" ? 5 : 3.5, 0, 2 * Math.PI);
        context.fillStyle = kind === "m" ? colour.bad : colour.card;
        context.fill();
        context.lineWidth = 1.2; context.strokeStyle = colour.ink; context.stroke();
      }
    }

    function choose(which, number) {
      if (robot !== robots[which] || !state.aimed) {
        robot = robots[which];
        middle = centre(robot);
        [state.turn, state.tilt] = robot.view.map((degrees) => degrees * Math.PI / 180);
        state.aimed = true;
      }
      state.mode = number;
      const mode = robot.modes[number];
      output.textContent = "mode " + (number + 1) + ": " + mode.hz.toFixed(2) + " Hz" + (mode.kind ? ", " + mode.kind : "");
      canvas.setAttribute("aria-label", robot.title + ", " + output.textContent + ". Drag or use the arrow keys to turn it.");
      lists.forEach((list, k) => { list.hidden = k !== which; });
      names.forEach((button, k) => button.setAttribute("aria-pressed", String(k === which)));
      lists[which].querySelectorAll(".still").forEach((button, k) => button.setAttribute("aria-pressed", String(k === number)));
      draw();
    }

    function play(on) {
      state.playing = on;
      pause.textContent = on ? "Pause" : "Play";
      if (on) { state.last = 0; requestAnimationFrame(step); }
    }

    function step(now) {
      if (!state.playing || !state.seen) { return; }
      state.phase += state.last ? Math.min(now - state.last, 100) / 1000 * 2 * Math.PI * 0.7 : 0;
      state.last = now;
      draw();
      requestAnimationFrame(step);
    }

    function turn(dx, dy) {
      state.turn -= dx * 0.008;
      state.tilt = Math.max(0, Math.min(Math.PI / 2, state.tilt + dy * 0.008));
      draw();
    }

    function zoom(factor) { state.zoom = Math.max(0.4, Math.min(6, state.zoom * factor)); draw(); }

    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); state.at = [event.clientX, event.clientY]; });
    canvas.addEventListener("pointermove", (event) => {
      if (!state.at) { return; }
      turn(event.clientX - state.at[0], event.clientY - state.at[1]);
      state.at = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) { canvas.addEventListener(name, () => { state.at = null; }); }
    canvas.addEventListener("wheel", (event) => { if (event.ctrlKey || document.activeElement === canvas) { event.preventDefault(); zoom(Math.exp(-event.deltaY * 0.002)); } }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-12, 0], ArrowRight: [12, 0], ArrowUp: [0, -12], ArrowDown: [0, 12] };
      if (moves[event.key]) { event.preventDefault(); turn(...moves[event.key]); }
      if (event.key === "+") { zoom(1.15); }
      if (event.key === "-") { zoom(1 / 1.15); }
      if (event.key === " ") { event.preventDefault(); play(!state.playing); }
    });
    pause.addEventListener("click", () => play(!state.playing));
    reach.addEventListener("input", draw);
    names.forEach((button, k) => button.addEventListener("click", () => choose(k, 0)));
    lists.forEach((list, which) => list.querySelectorAll(".still").forEach((button, k) => button.addEventListener("click", () => choose(which, k))));
    window.addEventListener("resize", draw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    still.addEventListener("change", () => play(!still.matches));
    new IntersectionObserver((entries) => { state.seen = entries[0].isIntersecting; if (state.seen && state.playing) { state.last = 0; requestAnimationFrame(step); } }).observe(canvas);
    choose(0, 0);
    play(state.playing);
  }

  const box = document.querySelector("#modes");
  if (box && robots.length) { player(box); }
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
