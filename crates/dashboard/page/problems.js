// The nodes that have failed or are down, by reason, and what a person could do next.
import { copyable } from "./copyable.js";
import { h, keyed, setAttribute, setText } from "./dom.js";
import { number, sentence, t } from "./i18n.js";
import { PROBLEMS, glyph, stateNamed } from "./states.js";

// So many nodes of a state are looked at, and so many are named per reason.
const NODES_MAX = 2_000;
const NAMED_MAX = 12;

export class Problems {
  #view;
  #onCount;
  #isShown;

  // `isShown()` says whether the list can be seen.
  constructor(view, onCount, isShown) {
    this.#view = view;
    this.#onCount = onCount;
    this.#isShown = isShown;
    this.groups = h("ul", { class: "reasons" });
    this.none = h("p", { class: "empty" }, t("noProblems"));
    this.next = h("div", { class: "next" });
    this.element = h("div", { class: "problems" }, this.none, this.groups, this.next);
  }

  counts() {
    const { fleet } = this.#view;
    const count = PROBLEMS.reduce((sum, state) => sum + fleet.counts[state], 0);
    setAttribute(this.none, "hidden", count > 0);
    this.#onCount(count);
    // The list reads all nodes.
    const isEmpty = this.groups.childElementCount === 0;
    if (!this.#isShown() || (count === 0 && isEmpty)) {
      return;
    }
    const found = count === 0 ? [] : fleet.inStates(PROBLEMS.map(stateNamed), NODES_MAX);
    keyed(
      this.groups,
      found.flatMap((nodes, place) => this.#groups(PROBLEMS[place], nodes)),
      (group) => group.key,
      (group) => this.#create(group),
      (element, group) => this.#write(element, group),
    );
  }

  // It can be seen again.
  show() {
    if (this.#view.fleet) {
      this.counts();
    }
  }

  rollout() {
    const { next = [] } = this.#view.rollout;
    const create = ({ command }) => h("div", { class: "suggestion" }, h("p"), copyable(command));
    const items = next.length > 0 ? [{ title: true, command: "" }, ...next] : [];
    keyed(
      this.next,
      items,
      (item) => (item.title ? "title" : item.command),
      (item) => (item.title ? h("h2", { class: "minor" }, t("whatToDo")) : create(item)),
      (element, item) => item.title || setText(element.firstChild, sentence(item.said, item.effect)),
    );
    this.show();
  }

  // The nodes of a state by what ails them.
  #groups(state, nodes) {
    const { fleet } = this.#view;
    const groups = new Map();
    for (const index of nodes) {
      const reason = fleet.reason(index);
      const key = `${state} ${reason}`;
      const group = groups.get(key) ?? { key, state, reason, nodes: [] };
      group.nodes.push(fleet.names[index]);
      groups.set(key, group);
    }
    return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length || a.key.localeCompare(b.key));
  }

  #create({ state }) {
    const parts = {
      reason: h("b"),
      count: h("span", { class: "faint" }),
      nodes: h("div", { class: "node-links" }),
    };
    const element = h(
      "li",
      { class: `state-${state}` },
      h("div", { class: "reason" }, glyph(state), parts.reason, parts.count),
      parts.nodes,
    );
    element.parts = parts;
    return element;
  }

  #write(element, group) {
    const { reason, count, nodes } = element.parts;
    setText(reason, group.reason || t(`state.${group.state}`));
    setText(count, t("nodeCount", { n: group.nodes.length }));
    const named = group.nodes.slice(0, NAMED_MAX);
    const more = group.nodes.length - named.length;
    const items = more > 0 ? [...named, ""] : named;
    const create = (name) => (name === "" ? h("span", { class: "faint" }) : this.#link(name));
    keyed(
      nodes,
      items,
      (name) => name,
      create,
      (child, name) => name === "" && setText(child, t("andMore", { n: number(more) })),
    );
  }

  #link(name) {
    return h("button", { class: "link", onclick: () => this.#view.select(name, "link") }, name);
  }
}
