// The page: its header, the view that the address names, and whether what is shown is up to date.
import { Failure, get } from "./api.js";
import { DaemonSetView } from "./daemonset.js";
import { h, replace, setAttribute, setText } from "./dom.js";
import { Header } from "./header.js";
import { showKeys, singleKeys } from "./keys.js";
import { NodeView } from "./node.js";
import { Overview } from "./overview.js";
import { parse } from "./routes.js";
import { setServerTime } from "./time.js";
import { t } from "./i18n.js";

const VIEWS = { overview: Overview, daemonset: DaemonSetView, node: NodeView };
const TICK_MS = 1_000;
const RETRY_MS = 2_000;

class App {
  session = null;
  #view = null;
  #root = document.getElementById("app");
  #main = h("main", { id: "main", tabindex: "-1" });

  async start() {
    this.header = new Header({ onLanguage: () => this.#restart(), onRetry: () => this.#view?.retry?.() });
    replace(this.#root, this.header.element, this.#main);
    this.#welcome();
    addEventListener("hashchange", () => this.#route());
    addEventListener("keydown", (event) => this.#key(event));
    setInterval(() => this.#tick(), TICK_MS);
    this.#route();
  }

  // The connection of the present view: see `Stream` for `state`; `status` is the stream's event of that name.
  connection(state, status, retryAt, why) {
    this.header.connection(state, status, retryAt, why);
    setAttribute(this.#main, "data-stale", state === "live" && status?.connected !== false ? null : true);
  }

  async #welcome() {
    try {
      this.session = await get("/api/session");
      setServerTime(this.session.now);
      this.header.session(this.session);
      this.#view?.sessionKnown?.();
    } catch (failure) {
      if (failure instanceof Failure && failure.status === 401) {
        this.connection("signed-out", null);
      } else {
        setTimeout(() => this.#welcome(), RETRY_MS);
      }
    }
  }

  #route() {
    const route = parse(location.hash);
    if (this.#view?.follow(route)) {
      return;
    }
    const first = this.#view === null;
    this.#view?.destroy();
    this.#view = new VIEWS[route.view](this, route);
    this.header.path(route);
    replace(this.#main, this.#view.element);
    document.title = `${this.#view.title()} · Kennel`;
    if (!first) {
      scrollTo(0, 0);
      this.#main.querySelector("h1")?.focus({ preventScroll: true });
    }
  }

  // Everything in another language.
  #restart() {
    this.#view?.destroy();
    this.#view = null;
    this.header.rebuild();
    if (this.session) {
      this.header.session(this.session);
    }
    this.#route();
  }

  #tick() {
    if (!document.hidden) {
      this.header.tick();
      this.#view?.tick?.();
    }
  }

  #key(event) {
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key.length === 1 && !singleKeys()) {
      return;
    }
    if (event.key === "/") {
      const search = this.#main.querySelector("input[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    } else if (event.key === "?") {
      showKeys();
    } else {
      this.#view?.key?.(event);
    }
  }
}

const skip = document.querySelector(".skip");
setText(skip, t("skip"));
skip.addEventListener("click", (event) => {
  // The fragment is the route.
  event.preventDefault();
  document.getElementById("main").focus();
});
new App().start();
