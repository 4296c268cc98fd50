import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';

/**
 * `pnpm arrows` prints, for each app and each package, the imports between its folders that run in a circle, types included:
 * how many folders are in circles, the fewest arrows that would have to turn for no circle to be left, and each of them with
 * its imports. A file directly under `src` counts as a folder of its own. The input is the JSON of dependency-cruiser.
 */
const { modules } = JSON.parse(await text(process.stdin));
const wanted = process.argv.slice(2);

/** Larger circles are ordered step by step, which may name an arrow too many. */
const EXACT = 18;

/** The app or package of a file, and its folder there: `llm`, `mcp/auth`, or the file itself if it is directly under `src`. */
function placeOf(file) {
  const [, member, path] = /^((?:apps|packages|infra)\/[^/]+)\/src\/(.+)$/.exec(file) ?? [];
  return member && { member, room: path.includes('/') ? dirname(path) : path };
}

/** The imports between folders by member: `from` → `to` → the files. */
const members = new Map();
for (const { source, dependencies } of modules) {
  const from = placeOf(source);
  if (!from) continue;
  const rooms = of(members, from.member, () => new Map());
  of(rooms, from.room, () => new Map());
  for (const { resolved } of dependencies) {
    const to = placeOf(resolved);
    if (to?.member !== from.member || to.room === from.room) continue;
    of(
      of(rooms, from.room, () => new Map()),
      to.room,
      () => [],
    ).push([source, resolved]);
  }
}

function of(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

for (const [member, rooms] of [...members].sort()) {
  if (wanted.length > 0 && !wanted.includes(member)) continue;
  const circles = circlesOf(rooms);
  const back = circles.flatMap((circle) => backIn(circle, rooms));
  const figures = `${back.length} arrows back, ${circles.length} circles`;
  const inCircles = circles.length === 0 ? '' : ` of ${circles.map(({ length }) => length).join(' and ')}`;
  console.log(`${member}: ${figures}${inCircles} (${rooms.size} folders and files under src)`);
  for (const circle of circles) console.log(`  circle: ${circle.join(' ')}`);
  for (const [from, to] of back) {
    console.log(`  ${from} → ${to}`);
    for (const [source, resolved] of rooms.get(from).get(to))
      console.log(`      ${source.slice(member.length + 5)} imports ${resolved.slice(member.length + 5)}`);
  }
}

/** The folders that reach each other, in groups of two or more. */
function circlesOf(rooms) {
  const reach = new Map([...rooms.keys()].map((room) => [room, reachedFrom(room, rooms)]));
  const left = new Set(rooms.keys());
  const circles = [];
  for (const room of left) {
    const circle = [...left].filter((other) => reach.get(room).has(other) && reach.get(other).has(room));
    for (const each of circle) left.delete(each);
    if (circle.length > 1) circles.push(circle);
  }
  return circles;
}

function reachedFrom(start, rooms) {
  const reached = new Set();
  const next = [start];
  while (next.length > 0)
    for (const to of rooms.get(next.pop())?.keys() ?? [])
      if (!reached.has(to)) {
        reached.add(to);
        next.push(to);
      }
  return reached;
}

/** The arrows against the best order of a circle's folders: those that import stand before those that they import. */
function backIn(circle, rooms) {
  const arrow = circle.map((from) => circle.map((to) => rooms.get(from).has(to)));
  const order = circle.length > EXACT ? improved(arrow) : best(arrow);
  return order.flatMap((from, place) =>
    order.slice(0, place).flatMap((to) => (arrow[from][to] ? [[circle[from], circle[to]]] : [])),
  );
}

/** The order with the fewest arrows back, over all orders, by the set of folders that are placed already. */
function best(arrow) {
  const size = arrow.length;
  const all = 2 ** size;
  const cost = new Uint16Array(all).fill(65535);
  const last = new Int8Array(all);
  cost[0] = 0;
  const masks = arrow.map((row) => row.reduce((mask, is, to) => (is ? mask | (1 << to) : mask), 0));
  for (let placed = 0; placed < all; placed++)
    for (let next = 0; next < size; next++) {
      if (placed & (1 << next)) continue;
      const then = placed | (1 << next);
      const total = cost[placed] + ones(masks[next] & placed);
      if (total < cost[then]) [cost[then], last[then]] = [total, next];
    }
  const order = [];
  for (let placed = all - 1; placed > 0; placed ^= 1 << order[0]) order.unshift(last[placed]);
  return order;
}

function ones(bits) {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count++;
  return count;
}

/** An order in which no single folder has a better place. */
function improved(arrow) {
  let order = arrow.map((_, index) => index);
  const backward = (given) =>
    given.reduce((sum, from, place) => sum + given.slice(0, place).filter((to) => arrow[from][to]).length, 0);
  for (let before = Infinity; backward(order) < before; ) {
    before = backward(order);
    for (const each of [...order]) {
      const others = order.filter((other) => other !== each);
      const places = order.map((_, place) => others.toSpliced(place, 0, each));
      order = places.reduce((one, other) => (backward(other) < backward(one) ? other : one), order);
    }
  }
  return order;
}
