// How many URLs one issuer process issues a second, on real stores.
// Run: TEST_DATABASE_URL=postgres://… TEST_REDIS_URL=redis://… npx tsx bench/issue.ts [connections] [seconds] [groups]
// With groups, a report of so many groups is read again and again meanwhile.
// Both are servers that may be written to: a database of its own is made and dropped; Redis gets partition keys.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { generateApiKey, generateEncryptionKey, generateSigningKey } from '@presign/crypto';
import { migrateDatabase } from '@presign/service/database';
import postgres from 'postgres';
import { Pool } from 'undici';
import { built } from './processes.ts';

const PORT = 18_787;
const WARM_UP_MS = 3_000;

const [connections = 32, seconds = 10, groups = 0] = process.argv.slice(2).map(Number);
const server = need('TEST_DATABASE_URL');
const redisUrl = need('TEST_REDIS_URL');
const apiKey = generateApiKey();
const body = JSON.stringify({
  provider: 'openai',
  path: '/v1/chat/completions',
  client_api_key: 'sk-bench-0123456789',
  max_uses: 100,
  cost_limit: 1_000_000,
  external_user: 'user-1',
});

await main();

async function main(): Promise<void> {
  const admin = postgres(server, { max: 1, onnotice: () => {} });
  const name = `presign_bench_${process.pid}`;
  await admin`create database ${admin(name)}`;
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  await migrateDatabase(url);
  const issuer = startIssuer(url);
  try {
    await ready(issuer);
    await measure(WARM_UP_MS);
    if (groups > 0) await fillLedger(url);
    const reading = groups > 0 ? readReports(performance.now() + seconds * 1000) : undefined;
    const before = await cpuSeconds(issuer.pid);
    const millis = await measure(seconds * 1000);
    const reports = await reading;
    if (reports)
      console.log(`${reports.length} reports; s: ${reports.map((ms) => (ms / 1000).toFixed(1)).join(' ')}`);
    report(millis, ((await cpuSeconds(issuer.pid)) - before) / seconds);
  } finally {
    issuer.kill('SIGTERM');
    await once(issuer, 'exit');
    await admin`drop database ${admin(name)} with (force)`;
    await admin.end();
  }
}

function startIssuer(databaseUrl: string): ChildProcess {
  const { args, env } = built('issuer');
  return spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...env,
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      ISSUER_PORT: String(PORT),
      GATEWAY_URL: 'https://gateway.example.com',
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      TOKEN_SIGNING_KEY: generateSigningKey(),
      ENCRYPTION_KEYS: generateEncryptionKey('k1'),
      BOOTSTRAP_API_KEY: apiKey,
      API_REQUESTS_PER_MINUTE: '1000000',
    },
  });
}

/** Resolves when the issuer says that it is ready; goes on reading its log, which would block it else. */
async function ready(issuer: ChildProcess): Promise<void> {
  for await (const chunk of issuer.stdout ?? []) {
    if (!String(chunk).includes('issuer is ready')) continue;
    issuer.stdout?.resume();
    return;
  }
  throw new Error('the issuer ended at its start');
}

/** Each connection asks again as soon as it is answered; returns how long each request took. */
async function measure(millis: number): Promise<number[]> {
  const pool = new Pool(`http://127.0.0.1:${PORT}`, { connections, pipelining: 1 });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const took: number[] = [];
  const end = performance.now() + millis;
  const loop = async () => {
    for (let begun = performance.now(); begun < end; begun = performance.now()) {
      const answer = await pool.request({ path: '/v1/presign', method: 'POST', headers, body });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}: ${text}`);
      took.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  await pool.close();
  return took;
}

/** Settled calls of as many users, of the account of the operator's own key. */
async function fillLedger(url: string): Promise<void> {
  const client = postgres(url, { max: 1 });
  await client`
    insert into ledger (hold_id, account_id, session_id, grant_id, provider, model, external_user, uses, cost_microusd,
      outcome, started_at, settled_at)
    select gen_random_uuid(), (select account_id from api_keys limit 1), gen_random_uuid(), gen_random_uuid(), 'openai',
      'model-1', 'user-' || n, 1, n, 'settled', now(), now() - interval '1 s' from generate_series(1, ${groups}::int) n`;
  await client`analyze ledger`;
  await client.end();
}

/** Reads one report after another until then; returns how long each took. */
async function readReports(end: number): Promise<number[]> {
  const pool = new Pool(`http://127.0.0.1:${PORT}`, { connections: 1 });
  const took: number[] = [];
  for (let begun = performance.now(); begun < end; begun = performance.now()) {
    const path = '/v1/usage?from=0&group_by=external_user,model';
    const answer = await pool.request({
      path,
      method: 'GET',
      headers: { authorization: `Bearer ${apiKey}` },
    });
    // Parsing it here would keep this process from timing the other requests.
    let last = '';
    for await (const chunk of answer.body) last = String(chunk).slice(-200);
    if (!/"total":\{"calls":\d+,.*\}\}$/.test(last) || !last.includes(`"calls":${groups},`))
      throw new Error(`answered ${answer.statusCode}: ${last}`);
    took.push(performance.now() - begun);
  }
  await pool.close();
  return took;
}

/** Processor time of the issuer so far, where the system tells. */
async function cpuSeconds(pid: number | undefined): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function report(millis: number[], cores: number): void {
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (q: number) => (sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN).toFixed(1);
  console.log(`Node ${process.version}, ${cpus()[0]?.model}, ${connections} connections, ${seconds} s`);
  console.log(`${Math.round(millis.length / seconds)} URLs/s; ms: median ${at(0.5)}, p99 ${at(0.99)}`);
  console.log(`the issuer used ${cores.toFixed(2)} cores`);
}

function need(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is missing`);
  return value;
}
