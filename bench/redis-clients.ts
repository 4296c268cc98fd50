/**
 * Compares Redis clients: CPU µs of this process for one EVALSHA with the arguments and the reply of an `admit`, 64 at once.
 * `bare socket` writes one text a turn and cuts replies out of it, with no reconnecting, Cluster, Sentinel or TLS: the floor.
 *
 *     REDIS_URL=redis://127.0.0.1:6379 CLIENTS_DIR=folder-with-redis-and-iovalkey npx tsx redis-clients.ts
 */
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connectRedis, redisReady } from '@presign/limits';
import { Redis } from 'ioredis';
import { sendScript, writeTogether } from '../packages/limits/src/redis.ts';

const ROUNDS = 11;
const CALLS = 20_000;
const AT_ONCE = 64;
const { REDIS_URL = 'redis://127.0.0.1:6379', CLIENTS_DIR } = process.env;

const LIST = "return {'admitted', '17', 3, '100', '123456', '250', '100', false, false, false, 1}";
const TEXT =
  "return table.concat({'admitted', '17', 3, '100', '123456', '250', '100', '', '', '', 1}, '\\t')";
const RECORD = JSON.stringify({ acc: '0'.repeat(36), ses: '0'.repeat(36), grt: '0'.repeat(36), beg: 1 });

const setup = connectRedis(REDIS_URL, console.error);
await redisReady(setup);
const [list, text] = await Promise.all(
  [LIST, TEXT].map(async (lua) => String(await setup.script('LOAD', lua))),
);
if (!list || !text) throw new Error('Redis loads no scripts');

/** 7 keys and 12 arguments, as `admit` has them for one budget. */
function placesOf(id: string): string[] {
  const keys = [
    'partition',
    `grant:${id}`,
    `credential:${id}`,
    `hold:${id}`,
    'leases',
    'usage',
    `budget:${id}`,
  ];
  const args = [id, '60000', '1', '1', '100000', id, id, RECORD, '10', '600000', '100', '16'];
  return [...keys.map((key) => `presign:{p12}:${key}`), ...args];
}
const KEYS = 7;

type Client = (sha: string, places: string[]) => Promise<unknown>;

const clients: Record<string, Client> = {};
const ioredis = new Redis(REDIS_URL);
clients.ioredis = (sha, places) => ioredis.evalsha(sha, KEYS, ...places);
clients['ioredis, one write a turn'] = (sha, places) => {
  writeTogether(ioredis);
  return ioredis.evalsha(sha, KEYS, ...places);
};
if (CLIENTS_DIR !== undefined) {
  const load = createRequire(join(CLIENTS_DIR, 'index.js'));
  const iovalkey = new (load('iovalkey') as typeof Redis)(REDIS_URL);
  clients.iovalkey = (sha, places) => iovalkey.evalsha(sha, KEYS, ...places);
  const redis = load('redis').createClient({ url: REDIS_URL });
  await redis.connect();
  clients['node-redis'] = (sha, places) =>
    redis.evalSha(sha, { keys: places.slice(0, KEYS), arguments: places.slice(KEYS) });
}
clients['ioredis, as the services do'] = (sha, places) =>
  sendScript(ioredis, { sha, text: '', read: (reply) => reply }, [KEYS, ...places]);
clients['bare socket'] = bareSocket();

const figures = new Map<string, number[]>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, client] of Object.entries(clients)) {
    for (const [form, sha] of [
      ['list', list],
      ['text', text],
    ] as const) {
      const micros = await measure(client, sha);
      // The first round warms the code up.
      if (round > 0) figures.set(`${name}, ${form}`, [...(figures.get(`${name}, ${form}`) ?? []), micros]);
    }
  }
}
console.log(`Node ${process.version}: CPU µs a script, lowest and median of ${ROUNDS} rounds`);
for (const [name, all] of figures) {
  all.sort((a, b) => a - b);
  console.log(name.padEnd(34), all[0]?.toFixed(1), all[ROUNDS >> 1]?.toFixed(1));
}
process.exit(0);

async function measure(client: Client, sha: string): Promise<number> {
  let left = CALLS;
  const one = async () => {
    while (left-- > 0) await client(sha, placesOf(randomBytes(16).toString('hex')));
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

function bareSocket(): Client {
  const { hostname, port } = new URL(REDIS_URL);
  const socket = connect(Number(port || 6379), hostname).setNoDelay();
  const waiting: ((reply: unknown) => void)[] = [];
  let out = '';
  let rest = '';
  socket.on('data', (bytes) => {
    rest += bytes.toString();
    for (let reply = cut(); reply !== undefined; reply = cut()) waiting.shift()?.(reply);
  });
  /** Takes one whole reply from `rest`: a text, or a list of texts and numbers. */
  const cut = (): string | string[] | undefined => {
    const lines = /^\*(\d+)\r\n/.exec(rest);
    const many = lines ? Number(lines[1]) : 1;
    const values: string[] = [];
    let at = lines?.[0].length ?? 0;
    while (values.length < many) {
      const end = rest.indexOf('\r\n', at);
      if (end < 0) return undefined;
      const head = rest.slice(at + 1, end);
      const isText = rest[at] === '$' && head !== '-1';
      const next = isText ? end + 2 + Number(head) + 2 : end + 2;
      if (next > rest.length) return undefined;
      values.push(isText ? rest.slice(end + 2, next - 2) : head);
      at = next;
    }
    rest = rest.slice(at);
    return lines ? values : values[0];
  };
  return (sha, places) =>
    new Promise((resolve) => {
      if (out === '')
        setImmediate(() => {
          socket.write(out);
          out = '';
        });
      const parts = ['EVALSHA', sha, String(KEYS), ...places];
      out += `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`;
      waiting.push(resolve);
    });
}
