// How fast nodes get the target: counted from the deltas of the last minutes.
import { STATES } from "./states.js";

const WINDOW_MS = 120_000;
// A shorter look says nothing.
const LEAST_MS = 8_000;

export class Rate {
  #steps = [];
  #since = performance.now();

  restart() {
    this.#steps = [];
    this.#since = performance.now();
  }

  changed(fleet, indices) {
    const reached = indices.filter((index) => STATES[fleet.state[index]]?.name === "new").length;
    if (reached > 0) {
      this.#steps.push([performance.now(), reached]);
    }
  }

  // Nodes per minute, or null when too little is known.
  perMinute() {
    const now = performance.now();
    while (this.#steps.length > 0 && this.#steps[0][0] < now - WINDOW_MS) {
      this.#steps.shift();
    }
    const span = Math.min(WINDOW_MS, now - this.#since);
    if (span < LEAST_MS) {
      return null;
    }
    const reached = this.#steps.reduce((sum, [, count]) => sum + count, 0);
    return (reached * 60_000) / span;
  }
}
