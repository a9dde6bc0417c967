// What the page knows of the nodes of one DaemonSet: the stream's picture, kept up to date by its deltas.
import { reasonText, t } from "./i18n.js";
import { GONE, STATES, stateIndex } from "./states.js";

// The "label" that groups nodes by the stage of the rollout that takes them.
export const BY_STAGE = "@stage";
// No grouping, in the page's address.
export const UNGROUPED = "none";

// Room for nodes that join after the picture.
const SPARE = 256;

export class Fleet {
  constructor(picture) {
    const count = picture.nodes.length;
    this.names = picture.nodes;
    this.groups = picture.groups;
    this.groupLabel = picture.groupLabel ?? "";
    this.labels = picture.labels;
    this.counts = picture.counts;
    this.reasons = new Map(picture.reasons ?? []);
    this.state = new Uint8Array(count + SPARE).fill(GONE);
    this.group = new Uint32Array(count + SPARE);
    this.group.set(picture.group);
    for (let index = 0; index < count; index += 1) {
      this.state[index] = stateIndex(picture.cells[index]);
    }
    this.#countGroups();
  }

  get size() {
    return this.names.length;
  }

  // Applies a delta. Returns the nodes whose cells differ, and whether the arrangement does: nodes that joined, left or changed
  // their group.
  apply(delta) {
    let arrangement = false;
    for (const group of delta.groups ?? []) {
      this.groups.push(group);
      this.groupCounts.push(new Uint32Array(STATES.length));
    }
    for (const { name, group, state } of delta.add ?? []) {
      this.#grow();
      const index = this.names.push(name) - 1;
      this.group[index] = group;
      this.#set(index, stateIndex(state));
      arrangement = true;
    }
    for (const [index, group] of delta.group ?? []) {
      const state = this.state[index];
      this.#set(index, GONE);
      this.group[index] = group;
      this.#set(index, state);
      arrangement = true;
    }
    const changed = [];
    for (const [index, letter] of delta.cells ?? []) {
      const state = stateIndex(letter);
      if (this.state[index] !== state) {
        // One that comes back may have lost its place.
        arrangement ||= this.state[index] === GONE;
        this.#set(index, state);
        changed.push(index);
      }
    }
    for (const [index, code] of delta.reasons ?? []) {
      if (code) {
        this.reasons.set(index, code);
      } else {
        this.reasons.delete(index);
      }
    }
    this.counts = delta.counts ?? this.counts;
    return { changed, arrangement };
  }

  // Without a rollout in stages, grouping by stage leaves one group without a name.
  get isGrouped() {
    if (this.groupLabel !== BY_STAGE) {
      return this.groupLabel !== "";
    }
    const hasNodes = (group) => this.groupCounts[group].some((count) => count > 0);
    return this.groups.some((name, group) => name !== "" && hasNodes(group));
  }

  // The group of a node as people call it; empty where nodes are not grouped.
  groupName(index) {
    return this.isGrouped && index >= 0 ? this.groupTitle(this.group[index]) : "";
  }

  groupTitle(group) {
    const value = this.groups[group];
    if (this.groupLabel !== BY_STAGE) {
      return value || t("noLabel");
    }
    return value ? t("stageNumber", { n: Number(value) }) : t("noStage");
  }

  // Why a node is in its state, in a few words.
  reason(index) {
    return reasonText(this.reasons.get(index));
  }

  stateName(index) {
    return STATES[this.state[index]]?.name ?? null;
  }

  indexOf(name) {
    const index = this.names.lastIndexOf(name);
    return index >= 0 && this.state[index] !== GONE ? index : -1;
  }

  // For each of these states its nodes, in the order of their names; at most `limit` of each.
  inStates(states, limit) {
    const found = states.map(() => []);
    for (let index = 0; index < this.size; index += 1) {
      const place = states.indexOf(this.state[index]);
      if (place >= 0 && found[place].length < limit) {
        found[place].push(index);
      }
    }
    return found;
  }

  // The nodes of each group, which are in the order of their names but for those that joined later.
  members() {
    const members = this.groups.map(() => []);
    for (let index = 0; index < this.size; index += 1) {
      if (this.state[index] !== GONE) {
        members[this.group[index]].push(index);
      }
    }
    return members;
  }

  #set(index, state) {
    const counts = this.groupCounts[this.group[index]];
    if (this.state[index] !== GONE) {
      counts[this.state[index]] -= 1;
    }
    if (state !== GONE) {
      counts[state] += 1;
    }
    this.state[index] = state;
  }

  #grow() {
    if (this.size < this.state.length) {
      return;
    }
    const [state, group] = [this.state, this.group];
    this.state = new Uint8Array(2 * state.length).fill(GONE);
    this.state.set(state);
    this.group = new Uint32Array(2 * group.length);
    this.group.set(group);
  }

  #countGroups() {
    this.groupCounts = this.groups.map(() => new Uint32Array(STATES.length));
    for (let index = 0; index < this.size; index += 1) {
      if (this.state[index] !== GONE) {
        this.groupCounts[this.group[index]][this.state[index]] += 1;
      }
    }
  }
}
