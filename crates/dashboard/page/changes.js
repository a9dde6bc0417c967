// What changed between the templates of two revisions.
import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";

export class Changes {
  #view;
  #from = "";
  #to = "";
  #fresh = false;

  constructor(view) {
    this.#view = view;
    const choose = () => this.compare(this.from.value, this.to.value) ?? this.load();
    this.from = h("select", { "aria-label": t("compareFrom"), onchange: choose });
    this.to = h("select", { "aria-label": t("compareTo"), onchange: choose });
    this.body = h("div", { class: "diff" });
    this.element = h(
      "div",
      { class: "changes" },
      h("div", { class: "tools" }, this.from, h("span", { "aria-hidden": "true" }, "→"), this.to),
      this.body,
    );
  }

  stale() {
    this.#fresh = false;
  }

  compare(from, to) {
    [this.#from, this.#to, this.#fresh] = [from, to, false];
  }

  async load() {
    if (this.#fresh) {
      return;
    }
    this.#fresh = true;
    try {
      await this.#read();
    } catch (failure) {
      this.#fresh = false;
      replace(this.body, h("p", { class: "failure" }, failure.message));
    }
  }

  async #read() {
    const { path } = this.#view;
    const { revisions } = await get(`${path}/history`);
    const known = [...revisions].reverse();
    if (known.length < 2) {
      replace(this.body, h("p", { class: "empty" }, t("oneRevision")));
      return;
    }
    const hashes = known.map(({ hash }) => hash);
    const target = known.find((entry) => entry.target)?.hash ?? hashes[0];
    this.#to = hashes.includes(this.#to) ? this.#to : target;
    this.#from = hashes.includes(this.#from) ? this.#from : this.#before(hashes);
    const options = () => known.map(({ revision, hash }) => h("option", { value: hash }, `#${revision} ${hash}`));
    replace(this.from, options());
    replace(this.to, options());
    [this.from.value, this.to.value] = [this.#from, this.#to];
    const [from, to] = [this.#from, this.#to].map(encodeURIComponent);
    const diff = await get(`${path}/diff?from=${from}&to=${to}`);
    this.#write(diff);
  }

  // Stable, from which a rollout comes, or the revision before.
  #before(hashes) {
    const stable = this.#view.rollout?.stable;
    if (stable && stable !== this.#to && hashes.includes(stable)) {
      return stable;
    }
    return hashes[hashes.indexOf(this.#to) + 1] ?? hashes.find((hash) => hash !== this.#to);
  }

  #write(diff) {
    if (!diff.lines.some(({ kind }) => kind === "-" || kind === "+")) {
      replace(this.body, h("p", { class: "empty" }, t("noChanges")));
      return;
    }
    const kinds = { "-": "removed", "+": "added", "@": "left-out", " ": "same" };
    const spoken = { "-": t("removed"), "+": t("added") };
    const line = ({ kind, text }) =>
      h(
        "div",
        { class: `diff-line ${kinds[kind] ?? "same"}` },
        spoken[kind] && h("span", { class: "visually-hidden" }, `${spoken[kind]}: `),
        h("span", { class: "sign", "aria-hidden": "true" }, kind === "@" ? "⋯" : kind),
        h("span", {}, text),
      );
    replace(
      this.body,
      h("div", { class: "diff-lines" }, diff.lines.map(line)),
      diff.truncated && h("p", { class: "faint" }, t("truncated")),
    );
  }
}
