// Requests to the dashboard that served the page, and to nothing else.
import { t } from "./i18n.js";

// A failure with the server's words. `code` is one of the table in crates/dashboard/src/protocol/answers.rs, or `Unreachable`.
export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// With `onlyStatus`, the body of an answer that is no failure is not read.
export function get(path, options = {}) {
  return send(path, options);
}

export function post(path, body) {
  return send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function send(path, { onlyStatus = false, ...options }) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Failure(0, "Unreachable", t("unreachable"));
  }
  if (onlyStatus && response.ok) {
    return null;
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    // The status says what there is to say.
  }
  if (!response.ok) {
    const message = answer?.message ?? t("httpStatus", { status: String(response.status) });
    throw new Failure(response.status, answer?.code ?? "", message);
  }
  return answer;
}

export function daemonSetPath(namespace, name) {
  return `/api/daemonsets/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

export function nodePath(namespace, name, node) {
  return `${daemonSetPath(namespace, name)}/nodes/${encodeURIComponent(node)}`;
}
