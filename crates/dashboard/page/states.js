// The states of a node: their letters in the protocol, their names in counts, and how they look. Colours are in base.css
// (`--state-new` and so on); every state also has a shape of its own, so that colour is never the only difference.
import { svg } from "./dom.js";

// In the order of bars and legends: what is done, what moves, what is wrong, what is left.
export const STATES = [
  { letter: "n", name: "new" },
  { letter: "u", name: "updating" },
  { letter: "f", name: "failed" },
  { letter: "d", name: "down" },
  { letter: "w", name: "waiting" },
  { letter: "o", name: "old" },
  { letter: "x", name: "notEligible" },
];

export const GONE = 255;

// Nodes in these states are listed as problems.
export const PROBLEMS = ["failed", "down"];

const INDEX = new Map(STATES.map((state, index) => [state.letter, index]));

// The index in `STATES` of a letter, `GONE` for a node that is no more.
export function stateIndex(letter) {
  return INDEX.get(letter) ?? GONE;
}

export function stateNamed(name) {
  return STATES.findIndex((state) => state.name === name);
}

// A cell of 16 by 16 as an SVG, for legends, lists and tooltips. The picture draws the same shapes with `drawCell`.
export function glyph(name) {
  const rect = (inset, attributes) =>
    svg("rect", { x: inset, y: inset, width: 16 - 2 * inset, height: 16 - 2 * inset, rx: 2, ...attributes });
  const shapes = {
    new: () => [rect(1, { class: "fill" })],
    updating: () => [rect(1.75, { class: "line tint" }), svg("path", { class: "fill", d: "M2 14V2L14 14Z" })],
    failed: () => [rect(1, { class: "fill" }), svg("path", { class: "mark", d: "M5 5 11 11M11 5 5 11" })],
    down: () => [rect(1.75, { class: "line" }), svg("path", { class: "line", d: "M3 13 13 3" })],
    waiting: () => [rect(2.75, { class: "line tint" })],
    old: () => [rect(3, { class: "fill" })],
    notEligible: () => [svg("circle", { class: "fill", cx: 8, cy: 8, r: 2 })],
  };
  return svg(
    "svg",
    { class: `glyph state-${name}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    shapes[name](),
  );
}

// Draws a cell of `size` device pixels with its top left corner at 0, 0. `colours` are fill, tint (a faint fill) and paper.
// Below eight pixels there is no room for shapes, so that only colour and weight differ.
export function drawCell(context, name, size, colours) {
  const { fill, tint, paper } = colours;
  const stroke = Math.max(1, Math.round(size / 9));
  const box = (inset) => context.fillRect(inset, inset, size - 2 * inset, size - 2 * inset);
  const outline = (inset, width = stroke) => {
    context.lineWidth = width;
    const half = inset + width / 2;
    context.strokeRect(half, half, size - 2 * half, size - 2 * half);
  };
  const line = (from, to) => {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  };
  const small = size < 8;
  context.fillStyle = fill;
  context.strokeStyle = fill;
  if (name === "new" || (small && name === "failed")) {
    box(0);
  } else if (name === "failed") {
    box(0);
    const [near, far] = [size * 0.28, size * 0.72];
    context.strokeStyle = paper;
    context.lineWidth = Math.max(1.5, size / 8);
    line([near, near], [far, far]);
    line([far, near], [near, far]);
  } else if (name === "updating") {
    context.fillStyle = tint;
    box(0);
    context.fillStyle = fill;
    context.beginPath();
    context.moveTo(0, 0);
    context.lineTo(0, size);
    context.lineTo(size, size);
    context.fill();
    if (!small) {
      outline(0);
    }
  } else if (name === "down") {
    outline(0);
    context.lineWidth = stroke;
    line([0, size], [size, 0]);
  } else if (name === "waiting") {
    // Most nodes wait most of the time: a quiet cell.
    const inset = small ? 0 : Math.round(size / 9);
    context.fillStyle = tint;
    box(inset);
    if (size >= 12) {
      outline(inset, Math.max(1, Math.round(size / 16)));
    }
  } else if (name === "old") {
    box(small ? 0 : Math.round(size / 7));
  } else {
    const dot = Math.max(1, Math.round(size / 4));
    const at = Math.round((size - dot) / 2);
    context.fillRect(at, at, dot, dot);
  }
}
