"use strict";
// Shows the nodes at any moment of the recording. Text from the cluster is set as text only.
(() => {
  const recording = JSON.parse(document.getElementById("recording").textContent);
  const STATES = [["n", "new"], ["u", "updating"], ["f", "failed"], ["d", "down"], ["w", "waiting its turn"], ["o", "old"],
    ["x", "not eligible"]];
  const LIGHT = { n: "#0a6ebd", u: "#e8a200", f: "#c8310a", d: "#3d4653", w: "#8c96a5", o: "#8c96a5", x: "#8c96a5", mark: "#fff" };
  const DARK = { n: "#4fb3f6", u: "#f5b93a", f: "#ff7350", d: "#c3ccd8", w: "#7d8898", o: "#7d8898", x: "#7d8898", mark: "#0d1117" };
  const PLAY_MS = 12000;
  const byId = (id) => document.getElementById(id);
  const [slider, play, clock, legend, canvas, cell] = ["time", "play", "clock", "legend", "waffle", "cell"].map(byId);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const length = Math.max(1, Number(slider.max));
  let columns = 1;
  let size = 12;
  let chosen = -1;

  // The state of all nodes at a time: forward from the last one shown, or from the start.
  let letters = [...recording.initial];
  let applied = 0;
  function seek(at) {
    if (applied > 0 && recording.changes[applied - 1][0] > at) {
      letters = [...recording.initial];
      applied = 0;
    }
    while (applied < recording.changes.length && recording.changes[applied][0] <= at) {
      const [, node, letter] = recording.changes[applied];
      letters[node] = letter;
      applied += 1;
    }
  }

  function text(ms) {
    if (length < 120000) return `${(ms / 1000).toFixed(1)} s`;
    const seconds = Math.floor(ms / 1000);
    const part = (value) => String(value).padStart(2, "0");
    return `${Math.floor(seconds / 3600)}:${part(Math.floor(seconds / 60) % 60)}:${part(seconds % 60)}`;
  }

  // One cell: a colour and a shape for each state.
  function paint(context, letter, x, y, side) {
    const colours = dark.matches ? DARK : LIGHT;
    context.fillStyle = colours[letter] ?? "transparent";
    context.strokeStyle = colours[letter] ?? "transparent";
    context.lineWidth = Math.max(1, side / 10);
    const inset = context.lineWidth / 2;
    if (letter === "w") {
      context.strokeRect(x + inset, y + inset, side - 2 * inset, side - 2 * inset);
    } else if (letter === "o") {
      context.fillRect(x + side / 5, y + side / 5, side * 0.6, side * 0.6);
    } else if (letter === "x") {
      context.fillRect(x + side * 0.4, y + side * 0.4, side * 0.2, side * 0.2);
    } else if (letter === "u") {
      context.globalAlpha = 0.35;
      context.fillRect(x, y, side, side);
      context.globalAlpha = 1;
      context.beginPath();
      context.moveTo(x, y + side);
      context.lineTo(x + side, y + side);
      context.lineTo(x + side, y);
      context.fill();
    } else if (letter === "d") {
      context.strokeRect(x + inset, y + inset, side - 2 * inset, side - 2 * inset);
      context.beginPath();
      context.moveTo(x, y + side);
      context.lineTo(x + side, y);
      context.stroke();
    } else if (letter !== "-") {
      context.fillRect(x, y, side, side);
    }
    if (letter === "f") {
      context.strokeStyle = colours.mark;
      context.beginPath();
      context.moveTo(x + side / 4, y + side / 4);
      context.lineTo(x + side * 0.75, y + side * 0.75);
      context.moveTo(x + side * 0.75, y + side / 4);
      context.lineTo(x + side / 4, y + side * 0.75);
      context.stroke();
    }
  }

  function lay() {
    const width = canvas.clientWidth;
    const count = recording.nodes.length;
    size = count <= 60 ? 28 : count <= 400 ? 18 : count <= 2000 ? 12 : count <= 10000 ? 8 : 5;
    columns = Math.max(1, Math.floor(width / size));
    const height = Math.ceil(count / columns) * size;
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  }

  function draw() {
    const at = Number(slider.value);
    seek(at);
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const side = size - Math.max(1, Math.round(size / 8));
    const counts = {};
    letters.forEach((letter, node) => {
      counts[letter] = (counts[letter] ?? 0) + 1;
      paint(context, letter, (node % columns) * size, Math.floor(node / columns) * size, side);
    });
    clock.textContent = text(at);
    slider.setAttribute("aria-valuetext", text(at));
    for (const [letter, count] of numbers) count.textContent = counts[letter] ?? 0;
    tell();
  }

  // The legend, with its numbers.
  const numbers = STATES.filter(([letter]) => recording.initial.includes(letter)
    || recording.changes.some((change) => change[2] === letter)).map(([letter, name]) => {
    const item = document.createElement("li");
    const sample = document.createElement("canvas");
    sample.width = sample.height = 24;
    sample.className = "sample";
    sample.setAttribute("aria-hidden", "true");
    const count = document.createElement("span");
    item.append(sample, `${name} `, count);
    legend.append(item);
    const show = () => {
      const context = sample.getContext("2d");
      context.clearRect(0, 0, 24, 24);
      paint(context, letter, 0, 0, 24);
    };
    show();
    dark.addEventListener("change", show);
    return [letter, count];
  });

  function tell() {
    if (chosen < 0) return;
    const state = STATES.find(([letter]) => letter === letters[chosen]);
    const failure = recording.failures.findLast((one) => one.node === recording.nodes[chosen]);
    const why = failure && letters[chosen] === "f" ? `: ${failure.message}` : "";
    cell.textContent = `${recording.nodes[chosen]}: ${state ? state[1] : "no such node"}${why}`;
  }

  function choose(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / size);
    const node = Math.floor((event.clientY - box.top) / size) * columns + column;
    if (column < 0 || column >= columns || node < 0 || node >= recording.nodes.length) return;
    chosen = node;
    tell();
  }

  let last = 0;
  let playing = false;
  function step(now) {
    if (!playing) return;
    const next = Number(slider.value) + ((now - last) * length) / PLAY_MS;
    last = now;
    slider.value = Math.min(next, length);
    draw();
    if (next >= length) return stop();
    requestAnimationFrame(step);
  }
  function stop() {
    playing = false;
    play.textContent = "Play";
  }
  play.addEventListener("click", () => {
    if (playing) return stop();
    if (Number(slider.value) >= length) slider.value = 0;
    playing = true;
    play.textContent = "Pause";
    last = performance.now();
    requestAnimationFrame(step);
  });
  slider.addEventListener("input", () => {
    stop();
    draw();
  });
  canvas.addEventListener("pointermove", choose);
  canvas.addEventListener("click", choose);
  addEventListener("resize", () => {
    lay();
    draw();
  });
  dark.addEventListener("change", draw);
  document.getElementById("moment").hidden = false;
  lay();
  draw();
})();
