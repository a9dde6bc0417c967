// The picture or the table of nodes, what a node says when pointed at, and which nodes step back because of a filter.
import { h, setAttribute } from "./dom.js";
import { NodeTable } from "./node_table.js";
import { Tooltip } from "./tooltip.js";
import { Waffle } from "./waffle.js";
import { t } from "./i18n.js";

// The picture takes what the window leaves below it, and at least so many CSS pixels.
const HEIGHT_MIN = 320;
const BELOW = 28;

export class Picture {
  #view;
  #fleet = null;
  #names = "";
  #states = null;
  #asTable = false;

  constructor(view) {
    this.#view = view;
    this.tooltip = new Tooltip(view);
    this.waffle = new Waffle({
      onSelect: (index, how) => index >= 0 && view.select(this.#fleet.names[index], how),
      onHover: (index, box) => this.tooltip.show(index < 0 ? "" : this.#fleet.names[index], box),
      isDim: (index) => this.#isDim(index),
      available: () => this.#available(),
    });
    this.table = new NodeTable(view, (index) => this.#fleet.state[index] !== 255 && !this.#isDim(index));
    this.hint = h("p", { id: "waffle-keys", class: "visually-hidden" }, t("waffleKeys"));
    this.element = h("div", { class: "picture" }, this.waffle.element, this.table.element, this.hint, this.tooltip.element);
  }

  destroy() {
    this.waffle.destroy();
    this.tooltip.destroy();
  }

  focus() {
    this.waffle.element.focus({ preventScroll: true });
  }

  show(fleet) {
    this.#fleet = fleet;
    this.waffle.show(fleet);
    this.table.show(fleet);
  }

  changed(indices, arrangement) {
    this.waffle.changed(indices, arrangement);
    if (this.#asTable && (indices.length > 0 || arrangement)) {
      this.table.changed();
    }
  }

  label(text) {
    this.waffle.label(text);
  }

  select(name, how) {
    const index = this.#fleet === null || name === "" ? -1 : this.#fleet.indexOf(name);
    this.waffle.select(index, how);
  }

  rearrange() {
    this.waffle.rearrange();
  }

  repaint(colours) {
    this.waffle.repaint(colours);
  }

  asTable(asTable) {
    this.#asTable = asTable;
    setAttribute(this.waffle.element, "hidden", asTable);
    this.table.setVisible(asTable);
  }

  // `states` is a set of indices of states or null for all, `names` a part of names.
  filter(states, names) {
    this.#states = states;
    this.#names = names.toLowerCase();
    this.waffle.repaint();
    this.table.changed();
  }

  #isDim(index) {
    const fleet = this.#fleet;
    if (this.#states !== null && !this.#states.has(fleet.state[index])) {
      return true;
    }
    return this.#names !== "" && !fleet.names[index].toLowerCase().includes(this.#names);
  }

  #available() {
    const top = this.element.getBoundingClientRect().top + scrollY;
    return Math.max(HEIGHT_MIN, innerHeight - top - BELOW);
  }
}
