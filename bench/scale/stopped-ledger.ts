/**
 * Measures what one account with shared budgets can do while the ledger stops: how much of Redis a settled call takes, how many calls one
 * partition takes until it refuses, and how fast the issuer writes them afterwards while calls go on.
 *
 *     npx tsx bench/scale/stopped-ledger.ts
 *
 * MAXMEMORY_MB (128) is the memory of Redis. It needs Linux, redis-server, openssl and Postgres, and starts stores of its own.
 */
import { randomBytes } from 'node:crypto';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { Pool } from 'undici';
import { startServices } from '../table/services.ts';

const MAXMEMORY = Number(process.env.MAXMEMORY_MB ?? 128) * 2 ** 20;
const PER_SECOND = 200;
const ASK = {
  ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real', expires_in: 86_400 },
  ...{ cost_limit: 1_000_000_000_000, external_user: 'user-123456', metadata: { team: 'search' } },
};
const BODY = JSON.stringify({
  ...{ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'word '.repeat(300) }], max_tokens: 500 },
});

const services = await startServices(process.execPath);
const { redis } = services;
await redis.config('SET', 'maxmemory', String(MAXMEMORY));
const created = await fetch(`${services.issuerOrigin}/v1/budgets`, {
  ...{ method: 'POST', headers: services.headers },
  body: JSON.stringify({ scope: { external_user: '*' }, cost_limit: 1_000_000_000_000, window: 'month' }),
});
if (!created.ok) throw new Error(await created.text());
const [path = ''] = await services.issue('/v1/presign', ASK, 1);
const gateway = await services.start('gateway', process.execPath);
const pool = new Pool(gateway.origin, { connections: 16 });
const call = async (): Promise<string> => {
  const headers = { 'content-type': 'application/json', 'user-agent': 'OpenAI/JS 6.1.0' };
  const { statusCode, body } = await pool.request({ path, method: 'POST', headers, body: BODY });
  const answer = (await body.json()) as { error?: { code: string } };
  return answer.error?.code ?? String(statusCode);
};
const mustPass = async () => {
  const code = await call();
  if (code !== '200') throw new Error(code);
};

const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
await mustPass();
while ((await services.settled()) > 0) await sleep(50);
await services.pauseIssuer(true);

const SAMPLE = 2_000;
const empty = await usedMemory();
for (let i = 0; i < SAMPLE / 20; i++) await Promise.all(Array.from({ length: 20 }, mustPass));
const partition = await fullest();
const stream = keys.usage(partition);
const bytes =
  Number(await redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', '0')) / (await redis.xlen(stream));
const growth = ((await usedMemory()) - empty) / SAMPLE;
console.log(
  `a settled call: ${bytes.toFixed(0)} bytes in its stream, used_memory grows by ${growth.toFixed(0)}`,
);

const filled = await fill();
const perSecond = (rate: number) => `${(filled / rate).toFixed(0)} s at ${rate.toLocaleString('en')} calls/s`;
console.log(
  `with maxmemory ${MAXMEMORY / 2 ** 20} MB one partition refuses at ${filled} calls: ${perSecond(1_000)}`,
);

let refused = 0;
let passed = 0;
let isDraining = true;
await services.pauseIssuer(false);
const began = performance.now();
const calls = (async () => {
  while (isDraining) {
    const codes = await Promise.all(Array.from({ length: PER_SECOND / 10 }, call));
    for (const code of codes) code === '200' ? passed++ : refused++;
    await sleep(100);
  }
})();
for (let left = filled; left > 500; left = await redis.xlen(stream)) await sleep(100);
const seconds = (performance.now() - began) / 1_000;
isDraining = false;
await calls;
const written = filled + passed;
console.log(
  `afterwards: ${written} calls written in ${seconds.toFixed(0)} s, ${(written / seconds).toFixed(0)} calls/s;`,
  `meanwhile ${passed} calls passed, and ${refused} were refused;`,
  `the load of the machine was ${loadavg()[0]?.toFixed(1)}, with this one in it`,
);
process.exit();

async function fullest(): Promise<number> {
  const lengths = await Promise.all(Array.from({ length: 64 }, (_, at) => redis.xlen(keys.usage(at))));
  return lengths.indexOf(Math.max(...lengths));
}

/** Adds calls like the last one, until the gateway refuses. Returns how many wait. */
async function fill(): Promise<number> {
  const [[, fields] = ['', []]] = await redis.xrevrange(stream, '+', '-', 'COUNT', 1);
  for (;;) {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 500; i++) {
      const entry = fields.with(fields.indexOf('hold') + 1, randomBytes(16).toString('hex'));
      pipeline.xadd(stream, '*', ...entry);
    }
    await pipeline.exec();
    const code = await call();
    if (code === '200') continue;
    if (code !== 'limits_unavailable') throw new Error(code);
    return redis.xlen(stream);
  }
}
