// Draws cells on a canvas. Each state is drawn once for the size of a cell and copied from then on, so that a change costs one
// copy of a few pixels, however many nodes there are.
import { STATES, drawCell, stateNamed } from "./states.js";

const DIM = 0.16;
// Below this size in device pixels a failed cell also fills the gaps around it, or nobody would see it among thousands.
const HALO_BELOW = 8;
const FAILED = stateNamed("failed");
// Sizes of cells whose copies are kept.
const KEPT_MAX = 6;
const NOTHING = 255;

export class Painter {
  #context;
  #colours = null;
  // By the size of a cell and its halo.
  #kept = new Map();
  #sprites = [];
  #dim = [];
  #halo = 0;
  // By index of the node: the state that its cell shows.
  #drawn = new Uint8Array(0);

  constructor(canvas) {
    this.canvas = canvas;
    this.#context = canvas.getContext("2d");
  }

  // Sets the canvas to a layout and prepares the cells; what was drawn is gone.
  prepare(layout) {
    this.layout = layout;
    const { canvas } = this;
    const [width, height] = [Math.max(1, layout.width), Math.max(1, layout.height)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.width = `${width / layout.scale}px`;
      canvas.style.height = `${height / layout.scale}px`;
    }
    this.#prepareCells();
  }

  // Another theme: colours come from the style sheet. What was drawn has to be drawn again.
  forgetColours() {
    this.#colours = null;
    this.#kept.clear();
    if (this.layout) {
      this.#prepareCells();
    }
  }

  all(fleet, isDim) {
    this.#context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.#drawn = new Uint8Array(this.layout.x.length).fill(NOTHING);
    for (const block of this.layout.blocks) {
      for (const index of block.members) {
        this.#copy(index, fleet.state[index], isDim(index));
      }
    }
  }

  some(fleet, indices, isDim) {
    const { layout } = this;
    const bared = [];
    for (const index of indices) {
      if (layout.x[index] >= 0) {
        const state = fleet.state[index];
        if (this.#drawn[index] === FAILED && state !== FAILED && this.#halo > 0) {
          this.#clear(index, this.#halo);
          bared.push(index);
        } else if (this.#sprites[state] === undefined) {
          this.#clear(index, 0);
        }
        this.#copy(index, state, isDim(index));
      }
    }
    // A gap belongs to the cells on both of its sides.
    for (const index of bared) {
      for (const neighbour of layout.around(index)) {
        if (this.#drawn[neighbour] === FAILED) {
          this.#copy(neighbour, FAILED, isDim(neighbour));
        }
      }
    }
  }

  #clear(index, halo) {
    const { x, y, cell } = this.layout;
    this.#context.clearRect(x[index] - halo, y[index] - halo, cell + 2 * halo, cell + 2 * halo);
  }

  #copy(index, state, dim) {
    const cell = (dim ? this.#dim : this.#sprites)[state];
    this.#drawn[index] = state;
    if (cell !== undefined) {
      const halo = state === FAILED ? this.#halo : 0;
      this.#context.drawImage(cell, this.layout.x[index] - halo, this.layout.y[index] - halo);
    }
  }

  #prepareCells() {
    const { cell: size, pitch } = this.layout;
    const halo = size < HALO_BELOW ? pitch - size : 0;
    const key = `${size} ${halo}`;
    if (!this.#kept.has(key)) {
      if (this.#kept.size >= KEPT_MAX) {
        this.#kept.clear();
      }
      this.#colours ??= this.#readColours();
      const draw = (alpha) => STATES.map((state) => this.#drawState(state.name, size, halo, alpha));
      this.#kept.set(key, [draw(1), draw(DIM)]);
    }
    this.#halo = halo;
    [this.#sprites, this.#dim] = this.#kept.get(key);
  }

  // One state. Its background is drawn, too, so that a copy needs no clearing before.
  #drawState(name, size, halo, alpha) {
    const { paper, states } = this.#colours;
    const side = name === "failed" ? size + 2 * halo : size;
    const cell = new OffscreenCanvas(side, side);
    const context = cell.getContext("2d");
    context.fillStyle = paper;
    context.fillRect(0, 0, side, side);
    context.globalAlpha = alpha;
    drawCell(context, name, side, { ...states[name], paper });
    return cell.transferToImageBitmap();
  }

  #readColours() {
    // A custom property's value is text; only as a colour does it follow the theme.
    const style = getComputedStyle(this.canvas);
    const colour = (name) => {
      this.canvas.style.color = `var(${name})`;
      return style.color;
    };
    const states = STATES.map(({ name }) => [
      name,
      { fill: colour(`--state-${name}`), tint: colour(`--state-${name}-tint`) },
    ]);
    return { paper: colour("--surface"), states: Object.fromEntries(states) };
  }
}
