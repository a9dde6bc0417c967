// Draws cells on a canvas. Each state is drawn once for the size of a cell and copied from then on, so that a change costs one
// copy of a few pixels, however many nodes there are.
import { STATES, drawCell } from "./states.js";

const DIM = 0.16;
// Below this size in device pixels a failed cell also fills the gaps around it, or nobody would see it among thousands.
const HALO_BELOW = 8;

export class Painter {
  #context;
  #sprites = [];
  #dim = [];
  #halo = 0;

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
    this.prepareCells();
  }

  // Colours come from the style sheet, so that a change of the theme only needs this and a new drawing.
  prepareCells() {
    // A custom property's value is text; only as a colour does it follow the theme.
    const style = getComputedStyle(this.canvas);
    const colour = (name) => {
      this.canvas.style.color = `var(${name})`;
      return style.color;
    };
    const paper = colour("--surface");
    const size = this.layout.cell;
    const halo = size < HALO_BELOW ? this.layout.pitch - size : 0;
    this.#halo = halo;
    const draw = ({ name }, alpha) => {
      const cell = document.createElement("canvas");
      cell.width = size + 2 * halo;
      cell.height = size + 2 * halo;
      const context = cell.getContext("2d");
      context.globalAlpha = alpha;
      const wide = name === "failed" ? halo : 0;
      context.translate(halo - wide, halo - wide);
      drawCell(context, name, size + 2 * wide, {
        fill: colour(`--state-${name}`),
        tint: colour(`--state-${name}-tint`),
        paper,
      });
      return cell;
    };
    this.#sprites = STATES.map((state) => draw(state, 1));
    this.#dim = STATES.map((state) => draw(state, DIM));
  }

  all(fleet, isDim) {
    this.#context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const block of this.layout.blocks) {
      for (const index of block.members) {
        this.#copy(index, fleet.state[index], isDim(index));
      }
    }
  }

  some(fleet, indices, isDim) {
    const { layout } = this;
    for (const index of indices) {
      if (layout.x[index] >= 0) {
        const size = layout.cell + 2 * this.#halo;
        this.#context.clearRect(layout.x[index] - this.#halo, layout.y[index] - this.#halo, size, size);
        this.#copy(index, fleet.state[index], isDim(index));
      }
    }
  }

  #copy(index, state, dim) {
    const cell = (dim ? this.#dim : this.#sprites)[state];
    if (cell !== undefined) {
      this.#context.drawImage(cell, this.layout.x[index] - this.#halo, this.layout.y[index] - this.#halo);
    }
  }
}
