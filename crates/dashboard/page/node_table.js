// The nodes as a table: what the picture shows, for screen readers and for everybody who prefers to read.
import { h, keyed, setAttribute, setText } from "./dom.js";
import { BY_STAGE } from "./fleet.js";
import { number, t } from "./i18n.js";
import { STATES, glyph } from "./states.js";

const PAGE = 100;
// During a rollout the table is written at most so often.
const EVERY_MS = 500;

export class NodeTable {
  #view;
  #wanted;
  #fleet = null;
  #page = 0;
  #visible = false;
  #timer = 0;

  // `wanted(index)` says which nodes the filter leaves.
  constructor(view, wanted) {
    this.#view = view;
    this.#wanted = wanted;
    this.body = h("tbody");
    this.group = h("th", { scope: "col" }, t("group"));
    this.position = h("span", { role: "status" });
    const turn = (by) => () => {
      this.#page += by;
      this.#write();
    };
    this.previous = h("button", { class: "small", onclick: turn(-1) }, t("previousPage"));
    this.next = h("button", { class: "small", onclick: turn(1) }, t("nextPage"));
    this.element = h(
      "div",
      { class: "node-table", hidden: true },
      h(
        "table",
        { class: "nodes" },
        h("caption", { class: "visually-hidden" }, t("nodes")),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            [t("node"), t("state"), t("reasonColumn")].map((text) => h("th", { scope: "col" }, text)),
            this.group,
          ),
        ),
        this.body,
      ),
      h("div", { class: "pages" }, this.previous, this.position, this.next),
    );
  }

  show(fleet) {
    this.#fleet = fleet;
    this.#page = 0;
    this.changed();
  }

  setVisible(visible) {
    this.#visible = visible;
    setAttribute(this.element, "hidden", !visible);
    this.changed();
  }

  changed() {
    if (this.#visible && this.#fleet !== null && this.#timer === 0) {
      this.#write();
      this.#timer = setTimeout(() => {
        this.#timer = 0;
        this.#write();
      }, EVERY_MS);
    }
  }

  #write() {
    const fleet = this.#fleet;
    if (!this.#visible || fleet === null) {
      return;
    }
    const all = [];
    for (let index = 0; index < fleet.size; index += 1) {
      if (this.#wanted(index)) {
        all.push(index);
      }
    }
    // Problems first, and then by name, as the picture has them.
    const rank = (index) => ({ failed: 0, down: 1, updating: 2 })[STATES[fleet.state[index]].name] ?? 3;
    all.sort((a, b) => rank(a) - rank(b) || a - b);
    const pages = Math.max(1, Math.ceil(all.length / PAGE));
    this.#page = Math.min(Math.max(this.#page, 0), pages - 1);
    const shown = all.slice(this.#page * PAGE, (this.#page + 1) * PAGE);
    setAttribute(this.group, "hidden", !fleet.isGrouped);
    setText(this.group, fleet.groupLabel === BY_STAGE ? t("stage") : fleet.groupLabel);
    keyed(
      this.body,
      shown,
      // Another picture gives other indices.
      (index) => fleet.names[index],
      (index) => this.#create(index),
      (row, index) => this.#update(row, index),
    );
    setAttribute(this.previous, "disabled", this.#page === 0);
    setAttribute(this.next, "disabled", this.#page === pages - 1);
    setText(
      this.position,
      t("pageOf", {
        from: number(Math.min(all.length, this.#page * PAGE + 1)),
        to: number(this.#page * PAGE + shown.length),
        n: all.length,
      }),
    );
  }

  #create(index) {
    const name = this.#fleet.names[index];
    const open = () => this.#view.select(name, "link");
    const parts = { state: h("span", { class: "state-tag" }), reason: h("td"), group: h("td") };
    const row = h(
      "tr",
      {},
      h("th", { scope: "row" }, h("button", { class: "link", onclick: open }, name)),
      h("td", {}, parts.state),
      parts.reason,
      parts.group,
    );
    row.parts = parts;
    return row;
  }

  #update(row, index) {
    const fleet = this.#fleet;
    const { state, reason, group } = row.parts;
    const name = fleet.stateName(index);
    if (state.dataset.state !== name) {
      state.dataset.state = name;
      state.className = `state-tag state-${name}`;
      state.replaceChildren(glyph(name), t(`state.${name}`));
    }
    setText(reason, fleet.reason(index));
    setAttribute(group, "hidden", !fleet.isGrouped);
    setText(group, fleet.groupName(index));
  }
}
