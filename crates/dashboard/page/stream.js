// A stream of server-sent events that connects again by itself, and says how it is.
import { get } from "./api.js";

// The server sends `alive` every 15 seconds when it has nothing else to say.
const SILENCE_MS = 40_000;
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 8_000;

// Of several hidden tabs only the one that was hidden last keeps its streams: a browser opens six connections to a server, and a
// seventh tab would wait for ever.
const streams = new Set();
const tabs = "BroadcastChannel" in window ? new BroadcastChannel("kennel-hidden") : null;
if (tabs) {
  tabs.onmessage = () => streams.forEach((stream) => stream.sleep());
}
addEventListener("online", () => streams.forEach((stream) => stream.retry()));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    tabs?.postMessage("hidden");
  } else {
    streams.forEach((stream) => stream.wake());
  }
});

// `on` maps names of events to functions of their data. `onState` gets "connecting", "live", "lost" (with the time of the next try,
// and why if the server said) or "signed-out", whenever that changes.
export class Stream {
  #path;
  #on;
  #onState;
  #source = null;
  #timer = 0;
  #watchdog = 0;
  #delay = RETRY_FIRST_MS;
  #state = "";
  #closed = false;
  #asleep = false;

  constructor(path, on, onState) {
    this.#path = path;
    this.#on = on;
    this.#onState = onState;
    streams.add(this);
    this.#open();
  }

  close() {
    this.#closed = true;
    this.#drop();
    clearTimeout(this.#timer);
    streams.delete(this);
  }

  // Connects now instead of after the pause.
  retry() {
    if (!this.#closed && this.#source === null) {
      clearTimeout(this.#timer);
      this.#open();
    }
  }

  #open() {
    // During an outage every try would flash.
    if (this.#state !== "lost") {
      this.#tell("connecting");
    }
    const source = new EventSource(this.#path);
    this.#source = source;
    source.onerror = () => this.#lost(source);
    source.addEventListener("alive", () => this.#heard());
    for (const [name, handle] of Object.entries(this.#on)) {
      source.addEventListener(name, (event) => {
        this.#heard();
        handle(JSON.parse(event.data));
      });
    }
    this.#heard();
  }

  #heard() {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#lost(this.#source), SILENCE_MS);
    if (this.#source?.readyState === EventSource.OPEN) {
      this.#delay = RETRY_FIRST_MS;
      if (this.#state !== "live") {
        this.#tell("live");
      }
    }
  }

  #tell(state, ...details) {
    this.#state = state;
    this.#onState(state, ...details);
  }

  #drop() {
    clearTimeout(this.#watchdog);
    this.#source?.close();
    this.#source = null;
  }

  async #lost(source) {
    if (this.#closed || source === null || source !== this.#source) {
      return;
    }
    this.#drop();
    const pause = this.#delay * (0.75 + Math.random() / 2);
    this.#delay = Math.min(this.#delay * 2, RETRY_MAX_MS);
    const retryAt = Date.now() + pause;
    this.#tell("lost", retryAt);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open(), pause);
    const failure = await refusal(this.#path);
    if (failure === null || this.#closed || this.#state !== "lost") {
      return;
    }
    if (failure.status === 401) {
      clearTimeout(this.#timer);
      this.#drop();
      this.#tell("signed-out");
    } else if (failure.status !== 0) {
      this.#tell("lost", retryAt, failure.message);
    }
  }

  sleep() {
    if (document.hidden && !this.#closed) {
      this.#asleep = true;
      clearTimeout(this.#timer);
      this.#drop();
    }
  }

  wake() {
    if (this.#asleep) {
      this.#asleep = false;
      this.retry();
    }
  }
}

// An EventSource does not say how it was refused: this asks for the same and reads nothing but the status. `null` if it is not.
async function refusal(path) {
  const giveUp = new AbortController();
  try {
    await get(path, { signal: giveUp.signal, headers: { Accept: "text/event-stream" }, onlyStatus: true });
    return null;
  } catch (failure) {
    return failure;
  } finally {
    giveUp.abort();
  }
}
