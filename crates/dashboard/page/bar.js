// A bar of nodes by state, and the same as text.
import { h, setAttribute, setText } from "./dom.js";
import { number, t } from "./i18n.js";
import { STATES, glyph } from "./states.js";

// A state with at least one node is never thinner than this share of the bar.
const LEAST = 0.012;

// `update(counts)` brings it up to date.
export function bar() {
  const parts = STATES.map(({ name }) => h("i", { class: `part state-${name}` }));
  const element = h("div", { class: "bar-of-states", role: "img" }, parts);
  element.update = (counts) => {
    const shown = STATES.map(({ name }) => (name === "notEligible" ? 0 : (counts[name] ?? 0)));
    const total = shown.reduce((sum, count) => sum + count, 0);
    parts.forEach((part, index) => {
      const grow = shown[index] === 0 ? 0 : Math.max(shown[index] / total, LEAST);
      const text = grow.toFixed(4);
      if (part.dataset.grow !== text) {
        part.dataset.grow = text;
        part.style.flexGrow = text;
      }
    });
    setAttribute(element, "aria-label", countsText(counts));
  };
  return element;
}

// `12 failed, 4,812 new`.
export function countsText(counts) {
  const parts = STATES.filter(({ name }) => counts[name] > 0);
  const text = parts.map(({ name }) => `${number(counts[name])} ${t(`state.${name}`)}`);
  return text.join(t("comma")) || t("noNodes");
}

// A shape with a number, for states that deserve a look.
export function chips(names) {
  const parts = names.map((name) => [
    name,
    h("b"),
    h("span", { class: "chip-of-state", title: t(`state.${name}`), hidden: true }),
  ]);
  for (const [name, count, chip] of parts) {
    chip.append(glyph(name), count, h("span", { class: "visually-hidden" }, ` ${t(`state.${name}`)}`));
  }
  const element = h(
    "span",
    { class: "chips" },
    parts.map(([, , chip]) => chip),
  );
  element.update = (counts) => {
    for (const [name, count, chip] of parts) {
      setAttribute(chip, "hidden", !counts[name]);
      setText(count, number(counts[name] ?? 0));
    }
  };
  return element;
}
