// Measures how one URL slows the calls of others. A gateway as in its container serves a bystander's calls at a steady rate:
// alone, beside a second gateway that another URL attacks as fast as it can, and under the same attack itself. The attack
// takes the same CPU from the machine in the last two, so their ratio is the part of the gateway. Prints the bystander's p50
// and p99, the ratios, the gateway's largest RSS, and the bystander's leases that ended. The bystander has an upstream
// of its own. The second gateway meets every attack, each from a fresh URL: the last column is its largest RSS so far. Fails if
// a gateway takes more than 400 MB, a lease ended, a bystander's call failed, the upstream of the attackers got more calls than the
// ledger charged, or a log line holds a token, a key or a URL. Needs redis-server.
// Run: pnpm --filter @presign/bench attacks [name]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ledger } from '@presign/schema/ledger-tables';
import { ATTACKS, type Attack } from '@presign/test/harness/attack-bodies.ts';
import { freePort } from '@presign/test/harness/free-port.ts';
import { startStack } from '@presign/test/harness/stack.ts';
import { Pool } from 'undici';
import { built, knownTo, listening, run } from './processes.ts';

const SECONDS = Number(process.env.SECONDS ?? 10);
const CALLS_PER_SECOND = 50;
const LEASE_SECONDS = 3;
const CONNECTIONS = 8;
const MOST_MB = 400;
const KEY = 'sk-real-key-of-the-attacked-provider';
const BYSTANDER = { provider: 'mistral', cost_limit: 1_000_000_000 };
const BODY = JSON.stringify({
  model: 'mistral-small-latest',
  max_tokens: 64,
  messages: [{ role: 'user', content: 'hi' }],
});
const dir = mkdtempSync(join(tmpdir(), 'presign-attacks-'));

const [attacked, own] = [await startUpstream(), await startUpstream()];
const providers = {
  openai: { base_url: attacked.url },
  google: { base_url: attacked.url },
  mistral: { base_url: own.url },
};

const redisPort = await freePort();
run('redis-server', ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']);
await listening(redisPort);
const stack = await startStack({ providers, redisUrl: `redis://127.0.0.1:${redisPort}` });

/** Calls of bystanders that were not served. */
let failed = 0;
type Gateway = { readonly port: number; readonly pid: number };
type Figures = { p50: number; p99: number; rss: number; refused: string };
const gatewayApp = built('gateway');
const other = await startGateway();
let otherRss = 0;
let isBroken = false;
const chosen = process.argv[2];
/** The secret part of each URL. */
const secrets: string[] = [KEY];
const rows: object[] = [];
for (const attack of ATTACKS.filter(({ name }) => chosen === undefined || name.includes(chosen))) {
  const gateway = await startGateway();
  const bystander = await issue(BYSTANDER);
  const alone = await measure(gateway, bystander.path);
  const beside = await measure(gateway, bystander.path, { attack, on: other });
  const under = await measure(gateway, bystander.path, { attack, on: gateway });
  const lost = (await stack.db.select().from(ledger)).filter(
    ({ outcome, sessionId }) => outcome === 'expired' && sessionId === bystander.sessionId,
  );
  rows.push({
    attack: attack.name,
    'p50 ms': round(under.p50),
    'p99 ms': round(under.p99),
    'p99 alone': round(alone.p99),
    'p99 beside': round(beside.p99),
    'to alone': round(under.p99 / alone.p99),
    'to beside': round(under.p99 / beside.p99),
    'RSS MB': Math.round(under.rss),
    'RSS of the other': Math.round(otherRss),
    'leases ended': lost.length,
    failed,
    answers: under.refused,
  });
  console.log(JSON.stringify(rows.at(-1)));
  isBroken ||= Math.max(under.rss, otherRss) > MOST_MB || lost.length + failed > 0;
  process.kill(gateway.pid, 'SIGKILL');
}
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}; ${SECONDS} s each`);
console.table(rows);
const unpaid = await callsNotCharged();
const leaks = readdirSync(dir).filter((file) => file.endsWith('.log') && leaksSecret(join(dir, file)));
console.log(JSON.stringify({ 'calls served and not charged': unpaid, 'logs with a secret': leaks.length }));
isBroken ||= unpaid > 0 || leaks.length > 0;
for (const { kill } of [attacked, own]) kill('SIGKILL');
process.exit(isBroken ? 1 : 0);

async function startUpstream() {
  const child = forked('./attack-upstream.ts');
  const [port] = (await once(child, 'message')) as [number];
  const calls = async () => {
    child.send('calls');
    return ((await once(child, 'message')) as [number])[0];
  };
  return { url: `http://127.0.0.1:${port}`, calls, kill: child.kill.bind(child) };
}

/** Every call that reached the upstream of the attackers costs a use. Calls of gateways that were killed are charged when their leases end. */
async function callsNotCharged(): Promise<number> {
  process.kill(other.pid, 'SIGKILL');
  let unpaid = 0;
  for (let tries = 0; tries < 20; tries++) {
    await sleep(LEASE_SECONDS * 1_000);
    await stack.issuer.ledger.drainAll();
    const paid = (await stack.db.select().from(ledger)).filter(({ provider }) => provider !== 'mistral');
    unpaid = (await attacked.calls()) - paid.reduce((sum, { uses }) => sum + uses, 0);
    if (unpaid <= 0) break;
  }
  return unpaid;
}

function leaksSecret(file: string): boolean {
  const text = readFileSync(file, 'latin1');
  return /\/llm\/t\/|\/mcp\/mcp/.test(text) || secrets.some((secret) => text.includes(secret));
}

async function startGateway(): Promise<Gateway> {
  const port = await freePort();
  const file = join(dir, 'providers.json');
  writeFileSync(file, JSON.stringify(providers));
  const env = {
    ...gatewayApp.env,
    HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    GATEWAY_URL: stack.gatewayUrls[0],
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    REDIS_URL: stack.redisUrl,
    TOKEN_PUBLIC_KEYS: stack.keys.publicKeys,
    ENCRYPTION_KEYS: stack.keys.encryption,
    PROVIDERS_FILE: file,
    ALLOW_PRIVATE_UPSTREAMS: 'true',
    HOLD_LEASE_SECONDS: String(LEASE_SECONDS),
    LOG_LEVEL: process.env.LOG_LEVEL ?? 'info',
  };
  const pid = run(process.execPath, knownTo(process.execPath, gatewayApp.args), env, {
    log: openSync(join(dir, `${port}.log`), 'a'),
  });
  await listening(port);
  return { port, pid };
}

/** A URL whose grant Redis has. */
async function issue(ask: object): Promise<{ readonly path: string; readonly sessionId: string }> {
  if ('servers' in ask) return issueMcp(ask.servers as object[]);
  const body = { provider: 'openai', path: '/v1/chat/completions', client_api_key: KEY, ...ask };
  const { url, session_id } = await stack.issue(body);
  const first = body.provider === 'google' ? '{' : BODY;
  await (await fetch(url, { method: 'POST', body: first })).arrayBuffer();
  const { pathname } = new URL(url);
  secrets.push(pathname.split('/')[3] ?? KEY);
  return { path: pathname, sessionId: session_id };
}

async function issueMcp(asked: object[]) {
  const auth = { auth_type: 'bearer', auth_config: { token: KEY } };
  const servers = asked.map((server) => ({ url: `${attacked.url}/mcp`, ...auth, ...server }));
  const issued = await stack.issueMcp({ servers });
  const { pathname, search, searchParams } = new URL(Object.values(issued.servers)[0]?.url ?? '');
  secrets.push(searchParams.get('token') ?? KEY);
  return { path: pathname + search, sessionId: issued.session_id };
}

async function measure(
  gateway: Gateway,
  path: string,
  attacking?: { readonly attack: Attack; readonly on: Gateway },
): Promise<Figures> {
  const attacker = attacking && (await startAttack(attacking.on.port, attacking.attack));
  await sleep(1_000);
  const pool = new Pool(originOf(gateway), { connections: 64, pipelining: 1 });
  const millis: number[] = [];
  let rss = 0;
  const calls: Promise<void>[] = [];
  const began = performance.now();
  for (let i = 0; i < SECONDS * CALLS_PER_SECOND; i++) {
    const due = began + (i * 1_000) / CALLS_PER_SECOND;
    await sleep(Math.max(0, due - performance.now()));
    calls.push(call(pool, path).then((ms) => void millis.push(ms)));
    if (i % 10 === 0) {
      rss = Math.max(rss, rssOf(gateway.pid));
      otherRss = Math.max(otherRss, rssOf(other.pid));
    }
  }
  await Promise.all(calls);
  attacker?.kill('SIGKILL');
  await pool.close();
  millis.sort((a, b) => a - b);
  const at = (share: number) => millis[Math.floor(share * millis.length)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), rss, refused: attacker ? JSON.stringify(attacker.seen) : '' };
}

function originOf({ port }: Gateway): string {
  return `http://127.0.0.1:${port}`;
}

async function call(pool: Pool, path: string): Promise<number> {
  const began = performance.now();
  const headers = { 'content-type': 'application/json' };
  const answer = await pool.request({ path, method: 'POST', body: BODY, headers });
  await answer.body.arrayBuffer();
  if (answer.statusCode !== 200) failed++;
  return performance.now() - began;
}

/** Attacks from a process of its own, so that its work does not slow the measuring. */
async function startAttack(port: number, attack: Attack) {
  const urls = await Promise.all(Array.from({ length: attack.urls ?? 1 }, () => issue(attack.ask)));
  const child = forked('./attacker.ts');
  const seen: Record<string, number> = {};
  child.on('message', (status: string) => {
    seen[status] = (seen[status] ?? 0) + 1;
  });
  const paths = urls.map(({ path }) => path);
  child.send({ host: '127.0.0.1', port, paths, name: attack.name, connections: CONNECTIONS });
  return { kill: child.kill.bind(child), seen };
}

function forked(file: string) {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return fork(path, [], { execArgv: process.execArgv });
}

function rssOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
