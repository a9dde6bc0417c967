// Addresses within the page. They are in the fragment, so that a view can be linked to and nothing of it is sent anywhere.

const part = encodeURIComponent;

export const href = {
  overview: () => "#/",
  node: (name) => `#/node/${part(name)}`,
  // `options`: node (selected), group (label), tab.
  daemonSet: (namespace, name, options = {}) => {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(options)) {
      if (value) {
        query.set(key, value);
      }
    }
    const text = query.toString();
    return `#/ds/${part(namespace)}/${part(name)}${text ? `?${text}` : ""}`;
  },
};

// {view: "overview"}, {view: "node", name} or {view: "daemonset", namespace, name, node, group, tab}.
export function parse(fragment) {
  const [path, query = ""] = fragment.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decode);
  if (parts[0] === "ds" && parts.length === 3) {
    const options = new URLSearchParams(query);
    const option = (key) => options.get(key) ?? "";
    return {
      view: "daemonset",
      namespace: parts[1],
      name: parts[2],
      node: option("node"),
      group: option("group"),
      tab: option("tab"),
    };
  }
  if (parts[0] === "node" && parts.length === 2) {
    return { view: "node", name: parts[1] };
  }
  return { view: "overview" };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
