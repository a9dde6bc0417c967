// Building and updating elements. Text from the cluster reaches the page through text nodes and attributes alone, so that it
// is never parsed as HTML.

// h("button", {class: "quiet", onclick: go, "aria-pressed": "true"}, "Go", icon): an element. Functions are event listeners,
// `true` is an attribute without a value, and `null`, `undefined` and `false` leave an attribute or a child out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else {
      setAttribute(element, name, value);
    }
  }
  element.append(...children.flat(Infinity).filter(isChild));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

// The same for SVG. Its listeners belong on an element around it.
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    setAttribute(element, name, value);
  }
  element.append(...children.flat(Infinity).filter(isChild));
  return element;
}

function isChild(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) {
      element.removeAttribute(name);
    }
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) {
    element.setAttribute(name, text);
  }
}

// Writes only what differs: an equal text would cost a layout.
export function setText(element, text) {
  const value = text === null || text === undefined ? "" : String(text);
  if (element.textContent !== value) {
    element.textContent = value;
  }
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(isChild));
}

// The same, but in place: elements that are there already stay, and with them focus, selection and scroll positions. Elements with
// a `data-key` stay with their key. Listeners of new elements do not reach those that stay.
export function patch(parent, ...children) {
  const nodes = children.flat(Infinity).filter(isChild);
  patchChildren(
    parent,
    nodes.map((child) => (child instanceof Node ? child : document.createTextNode(child))),
  );
}

function patchChildren(parent, children) {
  const keys = new Set(children.map((child) => child.dataset?.key));
  const known = new Map();
  for (const element of [...parent.children].filter((element) => element.dataset?.key)) {
    if (keys.has(element.dataset.key)) {
      known.set(element.dataset.key, element);
    } else {
      element.remove();
    }
  }
  let position = parent.firstChild;
  for (const child of children) {
    const key = child.dataset?.key;
    const present = key ? known.get(key) : position;
    if (!present || present.nodeName !== child.nodeName || present.dataset?.key !== key) {
      parent.insertBefore(child, position);
      continue;
    }
    if (present === position) {
      position = position.nextSibling;
    } else {
      parent.insertBefore(present, position);
    }
    patchNode(present, child);
  }
  while (position) {
    const gone = position;
    position = position.nextSibling;
    gone.remove();
  }
}

function patchNode(present, wanted) {
  if (!(wanted instanceof Element)) {
    setText(present, wanted.textContent);
    return;
  }
  for (const name of new Set([...present.getAttributeNames(), ...wanted.getAttributeNames()])) {
    if (name === "style") {
      // The security policy refuses the attribute.
      present.style.cssText = wanted.style.cssText;
    } else {
      setAttribute(present, name, wanted.getAttribute(name));
    }
  }
  patchChildren(present, [...wanted.childNodes]);
}

// One child element for each item, in the order of the items. Elements stay with their key, so that focus, selection and scroll
// positions survive. `create(item)` returns an element, and `update(element, item)` brings it up to date.
export function keyed(parent, items, keyOf, create, update) {
  const known = parent.keyedChildren ?? (parent.keyedChildren = new Map());
  const gone = new Set(known.keys());
  let position = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let element = known.get(key);
    if (element === undefined) {
      element = create(item);
      known.set(key, element);
    }
    gone.delete(key);
    update?.(element, item);
    if (element === position) {
      position = position.nextElementSibling;
    } else {
      parent.insertBefore(element, position);
    }
  }
  for (const key of gone) {
    known.get(key).remove();
    known.delete(key);
  }
}

// Says something to screen readers without moving the focus.
export function announce(text) {
  setText(document.getElementById("announce"), text);
}

// The last call of a series, after a pause.
export function debounce(milliseconds, action) {
  let timer = 0;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

// At most one call in a while, with the last values: for what changes all the time and is told now and then.
export function throttle(milliseconds, action) {
  let timer = 0;
  let last = [];
  const later = (...values) => {
    last = values;
    timer ||= setTimeout(() => {
      timer = 0;
      action(...last);
    }, milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
