// Above the picture: the legend, which counts and filters, the grouping, the search for nodes, and picture or table.
import { h, replace, setAttribute, setText } from "./dom.js";
import { BY_STAGE, UNGROUPED } from "./fleet.js";
import { number, t } from "./i18n.js";
import { STATES, glyph, stateNamed } from "./states.js";

// The choice of a label that is not offered.
const OTHER = "@other";

export class Toolbar {
  #view;
  #states = new Set();

  constructor(view) {
    this.#view = view;
    this.legend = h(
      "div",
      { class: "legend", role: "group", "aria-label": t("legend") },
      STATES.map((state) => this.#entry(state)),
    );
    this.groups = h("select", { onchange: () => this.#choose(this.groups.value) });
    this.label = h("input", {
      type: "text",
      hidden: true,
      "aria-label": t("labelKey"),
      placeholder: t("labelKey"),
      spellcheck: "false",
      onkeydown: (event) => event.key === "Escape" && this.#leaveLabel(event),
      // By Enter, too.
      onchange: () => this.#chooseLabel(),
    });
    this.search = h("input", {
      type: "search",
      placeholder: t("findNode"),
      "aria-label": t("findNode"),
      oninput: () => this.#filter(),
      onkeydown: (event) => this.#found(event),
    });
    this.asTable = h("button", { class: "toggle", "aria-pressed": "false", onclick: () => this.#toggle() }, t("asTable"));
    this.element = h(
      "div",
      { class: "toolbar" },
      this.legend,
      h("div", { class: "tools" }, h("label", {}, h("span", {}, t("groupBy")), this.groups), this.label, this.search, this.asTable),
    );
    this.#writeGroups([]);
  }

  picture() {
    this.#writeGroups(this.#view.fleet.labels);
    this.counts();
  }

  counts() {
    const { counts, size } = this.#view.fleet;
    // Room for the largest number: one that changes must not move the others.
    this.legend.style.setProperty("--digits", number(size).length);
    STATES.forEach(({ name }, index) => {
      const [, count] = this.legend.children[index].children;
      setText(count, number(counts[name]));
      setAttribute(this.legend.children[index], "data-none", counts[name] === 0);
    });
  }

  #entry({ name }) {
    const press = () => {
      const state = stateNamed(name);
      if (!this.#states.delete(state)) {
        this.#states.add(state);
      }
      this.#filter();
    };
    return h(
      "button",
      { class: "entry", "aria-pressed": "false", title: t(`state.${name}.why`), onclick: press },
      glyph(name),
      h("b"),
      h("span", {}, t(`state.${name}`)),
    );
  }

  #filter() {
    STATES.forEach(({ name }, index) => {
      setAttribute(this.legend.children[index], "aria-pressed", String(this.#states.has(stateNamed(name))));
    });
    setAttribute(this.legend, "data-filtered", this.#states.size > 0);
    this.#view.picture.filter(this.#states.size > 0 ? this.#states : null, this.search.value.trim());
  }

  // Enter selects the first node that matches.
  #found(event) {
    const { fleet } = this.#view;
    const text = this.search.value.trim().toLowerCase();
    if (event.key === "Enter" && fleet !== null && text !== "") {
      const exact = fleet.names.findIndex((name) => name.toLowerCase() === text);
      const index = exact >= 0 ? exact : fleet.names.findIndex((name) => name.toLowerCase().includes(text));
      if (index >= 0) {
        this.#view.select(fleet.names[index], "keyboard");
        this.#view.picture.focus();
      }
    } else if (event.key === "Escape" && this.search.value !== "") {
      event.stopPropagation();
      this.search.value = "";
      this.#filter();
    }
  }

  #toggle() {
    const pressed = this.asTable.getAttribute("aria-pressed") !== "true";
    setAttribute(this.asTable, "aria-pressed", String(pressed));
    this.#view.picture.asTable(pressed);
  }

  #choose(group) {
    const other = group === OTHER;
    setAttribute(this.label, "hidden", !other);
    if (other) {
      this.label.value = "";
      this.label.focus();
    } else {
      this.#view.setGroup(group);
    }
  }

  // Any label groups nodes, also one that few or all nodes have; the list offers those that make useful groups.
  #chooseLabel() {
    const key = this.label.value.trim();
    if (key !== "") {
      this.#view.setGroup(key);
      this.#writeGroups(this.#view.fleet?.labels ?? []);
      this.groups.focus();
      setAttribute(this.label, "hidden", true);
    }
  }

  #leaveLabel(event) {
    event.stopPropagation();
    this.label.value = "";
    this.groups.value = this.#view.group;
    this.groups.focus();
    setAttribute(this.label, "hidden", true);
  }

  #writeGroups(labels) {
    const { group } = this.#view;
    const known = [BY_STAGE, UNGROUPED, ...labels];
    const all = known.includes(group) ? known : [...known, group];
    const texts = { [BY_STAGE]: t("byStage"), [UNGROUPED]: t("noGroup"), [OTHER]: t("otherLabel") };
    const options = [...all, OTHER].map((label) => h("option", { value: label }, texts[label] ?? label));
    replace(this.groups, options);
    this.groups.value = group;
  }
}
