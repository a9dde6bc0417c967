// Where the cells of the picture are: groups as blocks, nodes as cells of a grid within them. All lengths are device pixels but
// those that say CSS.

// Sizes of a cell in CSS pixels, the largest first. The first with which everything fits is taken.
const SIZES = [26, 24, 22, 20, 18, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4];
// The least size in CSS pixels: below it the picture scrolls. It is smaller where scrolling would be endless.
const SIZE_MIN = 6;
const SIZE_MIN_MANY = 4;
const MANY = 10_000;
// CSS pixels.
const HEADER = 24;
const GUTTER = 20;
// Up to so many groups are columns of equal width, if each gets this many CSS pixels, and if none is so much larger than the mean.
const COLUMNS_MAX = 6;
const COLUMN_MIN = 170;
const UNEVEN = 1.6;
// Up to so many groups are bands over the whole width; more share rows.
const BANDS_MAX = 12;
// Room for the header of a small group, in CSS pixels.
const BLOCK_MIN = 96;

export class Layout {
  // The height with the next larger cells.
  #tooHigh = Infinity;
  #isSmallest = false;

  // `members` has the nodes of each group, `order` the groups as they are shown; `headers` says whether groups have headers.
  constructor({ members, order, headers, width, height, scale, capacity }) {
    this.scale = scale;
    this.headers = headers;
    const count = members.reduce((sum, group) => sum + group.length, 0);
    const least = count > MANY ? SIZE_MIN_MANY : SIZE_MIN;
    const sizes = SIZES.filter((size) => size >= least);
    for (const size of sizes) {
      this.#tooHigh = this.height ?? Infinity;
      this.#place(members, order, width, size);
      if (this.height <= height) {
        break;
      }
    }
    this.#isSmallest = this.cell === this.#cellOf(sizes.at(-1));
    this.#index(capacity);
  }

  // Whether another room for the picture leaves it as it is.
  fits(width, height) {
    const stays = this.height <= height || this.#isSmallest;
    return this.width === width && stays && this.#tooHigh > height;
  }

  // The nodes whose cells touch that of a node.
  around(index) {
    const block = this.blocks[this.blockOf[index]];
    const place = this.placeOf[index];
    const column = place % block.columns;
    const found = [];
    for (const across of [-1, 0, 1]) {
      if (column + across >= 0 && column + across < block.columns) {
        const beside = place + across;
        found.push(block.members[beside - block.columns], block.members[beside], block.members[beside + block.columns]);
      }
    }
    return found.filter((node) => node !== undefined && node !== index);
  }

  // The node at a point, or -1.
  at(x, y) {
    for (const block of this.blocks) {
      const [column, row] = [Math.floor((x - block.x) / this.pitch), Math.floor((y - block.y) / this.pitch)];
      if (column >= 0 && column < block.columns && row >= 0 && row < block.rows) {
        return block.members[row * block.columns + column] ?? -1;
      }
    }
    return -1;
  }

  // The node next to a point: for fingers, which are larger than cells.
  nearest(x, y) {
    let [best, least] = [-1, Infinity];
    for (const block of this.blocks) {
      if (block.members.length === 0) {
        continue;
      }
      const clamp = (value, most) => Math.min(Math.max(value, 0), most);
      const row = clamp(Math.floor((y - block.y) / this.pitch), block.rows - 1);
      const inRow = Math.min(block.columns, block.members.length - row * block.columns);
      const column = clamp(Math.floor((x - block.x) / this.pitch), inRow - 1);
      const [dx, dy] = [block.x + (column + 0.5) * this.pitch - x, block.y + (row + 0.5) * this.pitch - y];
      if (dx * dx + dy * dy < least) {
        least = dx * dx + dy * dy;
        best = block.members[row * block.columns + column];
      }
    }
    return best;
  }

  // The node that a key leads to from another one.
  step(index, key) {
    const block = this.blocks[this.blockOf[index]];
    if (!block) {
      return this.first();
    }
    const place = this.placeOf[index];
    const inRow = place % block.columns;
    switch (key) {
      case "ArrowLeft":
        return block.members[place - 1] ?? this.#beside(block, -1)?.members.at(-1) ?? index;
      case "ArrowRight":
        return block.members[place + 1] ?? this.#beside(block, 1)?.members[0] ?? index;
      case "ArrowUp":
        return block.members[place - block.columns] ?? this.#beyond(index, -1);
      case "ArrowDown":
        return block.members[place + block.columns] ?? this.#beyond(index, 1);
      case "Home":
        return block.members[place - inRow];
      case "End":
        return block.members[Math.min(place - inRow + block.columns, block.members.length) - 1];
      case "PageUp":
        return (this.#beside(block, -1) ?? block).members[0];
      case "PageDown":
        return (this.#beside(block, 1) ?? block).members[0];
      default:
        return index;
    }
  }

  // The next node after another one, in the order of the picture and around its end, that is wanted; else the same one.
  next(index, direction, wanted) {
    const order = this.blocks.flatMap((block) => block.members);
    const start = order.indexOf(index);
    for (let step = 1; step <= order.length; step += 1) {
      const place = (start + direction * step + 2 * order.length) % order.length;
      if (wanted(order[place])) {
        return order[place];
      }
    }
    return index;
  }

  first() {
    return this.blocks.find((block) => block.members.length > 0)?.members[0] ?? -1;
  }

  #beside(block, direction) {
    return this.blocks[this.blocks.indexOf(block) + direction];
  }

  // The nearest node of another block above or below.
  #beyond(index, direction) {
    const [x, y] = [this.x[index], this.y[index]];
    const own = this.blocks[this.blockOf[index]];
    let [best, least] = [index, Infinity];
    for (const block of this.blocks) {
      const away = direction < 0 ? own.y - block.y : block.y - own.y;
      if (block === own || away <= 0 || block.members.length === 0) {
        continue;
      }
      const row = direction < 0 ? block.rows - 1 : 0;
      const inRow = Math.min(block.columns, block.members.length - row * block.columns);
      const column = Math.min(Math.max(Math.round((x - block.x) / this.pitch), 0), inRow - 1);
      const node = block.members[row * block.columns + column];
      const [dx, dy] = [block.x + column * this.pitch - x, block.y + row * this.pitch - y];
      if (dx * dx + dy * dy < least) {
        [best, least] = [node, dx * dx + dy * dy];
      }
    }
    return best;
  }

  #cellOf(size) {
    return Math.max(2, Math.round(size * this.scale));
  }

  #place(members, order, width, size) {
    const { scale } = this;
    const gap = size >= 14 ? 3 : size >= 9 ? 2 : 1;
    this.cell = this.#cellOf(size);
    this.pitch = this.cell + Math.max(1, Math.round(gap * scale));
    const gutter = Math.round(GUTTER * scale);
    const header = this.headers ? Math.round(HEADER * scale) : 0;
    const most = Math.max(1, Math.floor((width + this.pitch - this.cell) / this.pitch));
    const equal = Math.floor((width - (order.length - 1) * gutter) / order.length);
    const room = Math.ceil((BLOCK_MIN * scale) / this.pitch);
    const kind = this.#kind(members, order, equal);
    let [x, y, shelf] = [0, 0, 0];
    this.blocks = order.map((group) => {
      const count = members[group].length;
      const square = Math.min(most, Math.max(room, Math.ceil(Math.sqrt(count * 2))));
      const columns = { columns: Math.max(1, Math.floor(equal / this.pitch)), bands: most, shelves: square }[kind];
      const rows = Math.ceil(count / columns);
      const wide = kind === "columns" ? equal : columns * this.pitch;
      if (x > 0 && x + wide > width + this.pitch) {
        [x, y, shelf] = [0, y + shelf + gutter, 0];
      }
      const block = { group, members: members[group], x, y: y + header, columns, rows, width: wide };
      shelf = Math.max(shelf, header + rows * this.pitch);
      x += wide + gutter;
      return block;
    });
    this.height = y + shelf;
    this.width = width;
  }

  // Even groups are compared side by side; uneven ones lie below each other.
  #kind(members, order, equal) {
    const sizes = order.map((group) => members[group].length);
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
    const even = Math.max(...sizes) <= UNEVEN * mean;
    if (order.length <= COLUMNS_MAX && even && equal >= COLUMN_MIN * this.scale) {
      return "columns";
    }
    return order.length <= BANDS_MAX ? "bands" : "shelves";
  }

  #index(capacity) {
    this.x = new Int32Array(capacity).fill(-1);
    this.y = new Int32Array(capacity);
    this.blockOf = new Uint32Array(capacity).fill(this.blocks.length);
    this.placeOf = new Uint32Array(capacity);
    this.blocks.forEach((block, number) => {
      block.members.forEach((index, place) => {
        this.x[index] = block.x + (place % block.columns) * this.pitch;
        this.y[index] = block.y + Math.floor(place / block.columns) * this.pitch;
        this.blockOf[index] = number;
        this.placeOf[index] = place;
      });
    });
  }
}
