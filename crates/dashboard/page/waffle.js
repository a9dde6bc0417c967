// The picture of a DaemonSet: one cell for each node. It draws only what has changed, and is a list box for the keyboard and for
// screen readers.
import { h, keyed, setAttribute, setText } from "./dom.js";
import { number, t } from "./i18n.js";
import { singleKeys } from "./keys.js";
import { Layout } from "./layout.js";
import { Painter } from "./painter.js";
import { PROBLEMS, stateNamed } from "./states.js";

const MOVES = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);
const PROBLEM_STATES = new Set(PROBLEMS.map(stateNamed));
// Numbers in the headers of groups are written at most so often.
const HEADERS_MS = 500;
// Beyond so many groups, headers have no numbers.
const HEADERS_MAX = 300;

// `onSelect(index, how)` and `onHover(index, box)` get -1 for none; `isDim(index)` says which cells step back.
export class Waffle {
  #fleet = null;
  #layout = null;
  #painter;
  #pending = new Set();
  #frame = 0;
  #everything = false;
  #arrangement = false;
  #moved = false;
  #hovered = -1;
  // Where the mouse is, in CSS pixels of the window.
  #mouse = null;
  #headersAt = 0;
  #selected = -1;
  #options;

  constructor({ onSelect, onHover, isDim, available }) {
    this.#options = { onSelect, onHover, isDim, available };
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.headers = h("div", { class: "waffle-headers", "aria-hidden": "true" });
    this.cursor = h("div", { class: "waffle-cursor", hidden: true });
    this.pointer = h("div", { class: "waffle-pointer", hidden: true });
    // Two, in turn: some screen readers stay silent when the text of an active option changes.
    this.options = ["a", "b"].map((name, index) =>
      h(
        "div",
        { role: "option", id: `waffle-option-${name}`, class: "visually-hidden", "aria-selected": "false", hidden: index > 0 },
        t("noneSelected"),
      ),
    );
    this.element = h(
      "div",
      { class: "waffle", role: "listbox", tabindex: "0", "aria-describedby": "waffle-keys" },
      this.canvas,
      this.headers,
      this.pointer,
      this.cursor,
      this.options,
    );
    this.#painter = new Painter(this.canvas);
    this.#listen();
  }

  destroy() {
    this.#resize.disconnect();
    removeEventListener("resize", this.#rearrange);
    cancelAnimationFrame(this.#frame);
  }

  // Another picture: everything is placed anew.
  show(fleet) {
    this.#fleet = fleet;
    this.#arrangement = true;
    this.#draw();
  }

  // After a delta.
  changed(indices, arrangement) {
    this.#arrangement ||= arrangement;
    for (const index of indices) {
      this.#pending.add(index);
    }
    if (arrangement || indices.length > 0) {
      this.#draw();
    }
  }

  // After another filter, or another theme.
  repaint(colours = false) {
    if (colours) {
      this.#painter.forgetColours();
    }
    this.#everything = true;
    this.#draw();
  }

  // The room for the picture may be another one.
  rearrange() {
    this.#moved = true;
    this.#draw();
  }

  select(index, how = "") {
    this.#selected = index;
    this.#placeCursor(how);
    this.#describe(index);
  }

  label(text) {
    setAttribute(this.element, "aria-label", text);
  }

  #rearrange = () => this.rearrange();
  // 0 while hidden. Asking the element instead would cost a layout in each frame.
  #width = 0;
  #resize = new ResizeObserver((entries) => {
    const width = Math.round(entries.at(-1).contentRect.width);
    if (width !== this.#width) {
      this.#width = width;
      this.rearrange();
    }
  });

  // What comes while the picture is hidden is drawn when it is shown.
  #draw() {
    if (this.#frame === 0 && this.#width > 0) {
      this.#frame = requestAnimationFrame(() => this.#onFrame());
    }
  }

  #onFrame() {
    this.#frame = 0;
    if (this.#fleet === null || this.#width === 0) {
      return;
    }
    const { isDim } = this.#options;
    if (this.#needsLayout()) {
      this.#arrange();
      this.#painter.all(this.#fleet, isDim);
      performance.mark("waffle");
    } else if (this.#everything) {
      this.#painter.all(this.#fleet, isDim);
    } else {
      this.#painter.some(this.#fleet, this.#pending, isDim);
    }
    this.#arrangement = false;
    this.#moved = false;
    this.#everything = false;
    this.#pending.clear();
    this.#writeHeaders();
  }

  // What is above the picture changes its height all the time; that rarely makes cells larger or smaller.
  #needsLayout() {
    if (this.#arrangement || this.#layout === null || this.#layout.scale !== devicePixelRatio) {
      return true;
    }
    return this.#moved && !this.#layout.fits(...this.#room());
  }

  // In device pixels.
  #room() {
    const scale = devicePixelRatio;
    return [Math.floor(this.#width * scale), Math.floor(this.#options.available() * scale)];
  }

  #arrange() {
    const [fleet, scale] = [this.#fleet, devicePixelRatio];
    const [width, height] = this.#room();
    const members = fleet.members();
    const order = fleet.groups.map((_, group) => group).filter((group) => members[group].length > 0);
    // As people count; nodes without the label come last.
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    order.sort((a, b) => {
      const [one, other] = [fleet.groups[a], fleet.groups[b]];
      return Number(one === "") - Number(other === "") || compare(one, other);
    });
    this.#layout = new Layout({
      members,
      order,
      headers: fleet.isGrouped,
      width,
      height,
      scale,
      capacity: fleet.state.length,
    });
    this.#painter.prepare(this.#layout);
    this.#headersAt = 0;
    this.#placeCursor("");
    // Another node may be below the mouse now.
    if (this.#hovered >= 0) {
      this.#leave();
      this.#hover();
    }
  }

  #writeHeaders() {
    const now = performance.now();
    if (!this.#fleet.isGrouped) {
      keyed(this.headers, [], (block) => block.group);
      return;
    }
    if (now - this.#headersAt < HEADERS_MS) {
      return;
    }
    this.#headersAt = now;
    const { scale, blocks } = this.#layout;
    const detailed = blocks.length <= HEADERS_MAX;
    const create = () => h("div", { class: "waffle-header" }, h("b"), h("span"), h("em"));
    const failed = stateNamed("failed");
    keyed(
      this.headers,
      blocks,
      (block) => block.group,
      create,
      (element, block) => {
        const [name, count, failures] = element.children;
        const counts = this.#fleet.groupCounts[block.group];
        setText(name, this.#fleet.groupTitle(block.group));
        setText(count, number(block.members.length));
        setText(failures, detailed && counts[failed] > 0 ? t("failedCount", { n: counts[failed] }) : "");
        const transform = `translate(${block.x / scale}px, ${(block.y - 24 * scale) / scale}px)`;
        if (element.style.transform !== transform) {
          element.style.transform = transform;
        }
        const width = `${block.width / scale}px`;
        if (element.style.width !== width) {
          element.style.width = width;
        }
      },
    );
  }

  #placeCursor(how) {
    const layout = this.#layout;
    const shown = layout !== null && this.#selected >= 0 && layout.x[this.#selected] >= 0;
    setAttribute(this.cursor, "hidden", !shown);
    if (shown) {
      this.#put(this.cursor, this.#selected);
      if (how === "keyboard" || how === "link") {
        this.cursor.scrollIntoView({ block: "nearest" });
      }
    }
  }

  #put(element, index) {
    const { x, y, cell, scale } = this.#layout;
    const size = `${cell / scale}px`;
    element.style.transform = `translate(${x[index] / scale}px, ${y[index] / scale}px)`;
    element.style.width = size;
    element.style.height = size;
  }

  #describe(index) {
    const [next, other] = this.options[0].hidden ? this.options : [...this.options].reverse();
    setAttribute(other, "hidden", true);
    setAttribute(next, "hidden", false);
    if (index < 0 || this.#fleet === null) {
      setText(next, t("noneSelected"));
      setAttribute(next, "aria-selected", "false");
      setAttribute(this.element, "aria-activedescendant", null);
      return;
    }
    const fleet = this.#fleet;
    const state = t(`state.${fleet.stateName(index) ?? "gone"}`);
    const parts = [fleet.names[index], state, fleet.reason(index), fleet.groupName(index)];
    setText(next, parts.filter(Boolean).join(", "));
    setAttribute(next, "aria-selected", "true");
    setAttribute(next, "aria-setsize", fleet.size);
    setAttribute(next, "aria-posinset", index + 1);
    setAttribute(this.element, "aria-activedescendant", next.id);
  }

  #point([clientX, clientY]) {
    const box = this.canvas.getBoundingClientRect();
    const { scale } = this.#layout;
    return [(clientX - box.left) * scale, (clientY - box.top) * scale];
  }

  // Shows what is below the mouse.
  #hover() {
    const index = this.#layout.at(...this.#point(this.#mouse));
    if (index === this.#hovered) {
      return;
    }
    if (index < 0) {
      this.#leave();
      return;
    }
    this.#hovered = index;
    setAttribute(this.pointer, "hidden", false);
    this.#put(this.pointer, index);
    this.#options.onHover(index, this.pointer);
  }

  #leave() {
    this.#hovered = -1;
    setAttribute(this.pointer, "hidden", true);
    this.#options.onHover(-1, null);
  }

  #listen() {
    const { element } = this;
    const { onSelect } = this.#options;
    this.#resize.observe(element);
    addEventListener("resize", this.#rearrange);
    element.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch" && this.#layout !== null) {
        this.#mouse = [event.clientX, event.clientY];
        this.#hover();
      }
    });
    element.addEventListener("pointerleave", () => this.#leave());
    element.addEventListener("click", (event) => {
      if (this.#layout !== null) {
        onSelect(this.#layout.nearest(...this.#point([event.clientX, event.clientY])), "pointer");
      }
    });
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => this.#describe(this.#selected));
  }

  #key(event) {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (this.#layout === null || !plain) {
      return;
    }
    const { onSelect } = this.#options;
    const from = this.#selected;
    if (MOVES.has(event.key)) {
      event.preventDefault();
      onSelect(from < 0 ? this.#layout.first() : this.#layout.step(from, event.key), "keyboard");
    } else if (singleKeys() && (event.key === "n" || event.key === "p")) {
      event.preventDefault();
      const isProblem = (index) => PROBLEM_STATES.has(this.#fleet.state[index]);
      onSelect(this.#layout.next(from, event.key === "n" ? 1 : -1, isProblem), "keyboard");
    }
  }
}
