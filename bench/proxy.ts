// What one fully enforced call costs: CPU of the proxy's own process, calls a second, latency. 1 KB in, 2 KB out.
// For comparison, on the same upstream and in turn: no proxy, nginx alone, nginx + Lua running the same two Redis
// scripts, and Portkey's gateway, which enforces nothing. Peers that are not installed are left out.
// Needs redis-server. Run: pnpm --filter @presign/bench proxy   (PORTKEY_DIR=folder where @portkey-ai/gateway is installed)
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { freePort } from '@presign/test/harness/free-port.ts';
import { startStack } from '@presign/test/harness/stack.ts';
import { Pool } from 'undici';
import { grantOf, loadScripts, nginxConf } from './nginx-lua.ts';
import { built, cpuMicros, listening, run } from './processes.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 7);
const CALLS = Number(process.env.CALLS ?? 6_000);
const CONNECTIONS = 64;
const TOKENS = 1_000;
const BODY = JSON.stringify({ model: 'gpt-x', messages: [{ role: 'user', content: 'x'.repeat(960) }] });
const ANSWER = JSON.stringify({
  choices: [{ message: { content: 'x'.repeat(1_920) } }],
  usage: { prompt_tokens: 250, completion_tokens: 480, total_tokens: 730 },
});

type Subject = {
  readonly name: string;
  readonly origin: string;
  readonly paths: readonly string[];
  readonly headers?: Record<string, string>;
  /** Whether each call must leave an entry in the usage stream: a peer that settles nothing is no peer. */
  readonly settles?: true;
  /** Whose CPU time is counted; none for the direct call. */
  readonly pid: number | undefined;
};
type Round = { cpuMicros: number; perSecond: number; p50: number; p99: number };

const dir = mkdtempSync(join(tmpdir(), 'presign-bench-'));

const upstream = createServer((request, response) => {
  request.resume().once('end', () => {
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
      .end(ANSWER);
  });
});
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
const upstreamPort = (upstream.address() as { port: number }).port;
const upstreamUrl = `http://127.0.0.1:${upstreamPort}`;

const redisPort = await freePort();
run('redis-server', ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']);
await listening(redisPort);
const stack = await startStack({
  providers: { openai: { base_url: upstreamUrl } },
  redisUrl: `redis://127.0.0.1:${redisPort}`,
});
const urls = await issue();
const gateway = await startGateway();
// From here on usage entries stay in Redis: the drainer would compete for the two cores.
await stack.issuer.ledger.close();

const paths = urls.map((url) => new URL(url).pathname);
const subjects: Subject[] = [
  { name: 'direct', origin: upstreamUrl, paths: ['/v1/chat/completions'], pid: undefined },
  { name: 'presign', origin: `http://127.0.0.1:${gateway.port}`, paths, pid: gateway.pid, settles: true },
  ...(await nginxSubjects()),
  ...(await portkey()),
];
const rounds = new Map(subjects.map(({ name }) => [name, [] as Round[]]));
for (let round = -1; round < ROUNDS; round++) {
  for (const subject of subjects) {
    const figures = await load(subject);
    if (round >= 0) rounds.get(subject.name)?.push(figures);
  }
}
print();
process.exit(0);

/** A gateway in a process of its own, built and run as in its container, logging as it does by default; it finds its grants in Redis. */
async function startGateway(): Promise<{ port: number; pid: number | undefined }> {
  const port = await freePort();
  const providers = join(dir, 'providers.json');
  writeFileSync(providers, stack.providersJson);
  const { args, env } = built('gateway');
  const pid = run(process.execPath, args, {
    ...env,
    HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    GATEWAY_URL: stack.gatewayUrls[0],
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    REDIS_URL: stack.redisUrl,
    TOKEN_PUBLIC_KEYS: stack.keys.publicKeys,
    ENCRYPTION_KEYS: stack.keys.encryption,
    PROVIDERS_FILE: providers,
    ALLOW_PRIVATE_UPSTREAMS: 'true',
  });
  await listening(port);
  return { port, pid };
}

/** URLs whose grants are open in Redis, each called once. */
async function issue(): Promise<string[]> {
  const issued: string[] = [];
  for (let i = 0; i < TOKENS; i++) {
    const ask = {
      provider: 'openai',
      path: '/v1/chat/completions',
      client_api_key: 'sk-real',
      max_uses: 10_000_000,
    };
    const { url } = await stack.issue(ask);
    const answer = await fetch(url, { method: 'POST', body: BODY });
    if (answer.status !== 200) throw new Error(`a first call answered ${answer.status}`);
    await answer.arrayBuffer();
    issued.push(url);
  }
  return issued;
}

async function load({ name, origin, paths: targets, headers, pid, settles }: Subject): Promise<Round> {
  const pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
  const millis: number[] = [];
  let next = 0;
  const one = async () => {
    while (next < CALLS) {
      const path = targets[next++ % targets.length] ?? '/';
      const began = performance.now();
      const options = {
        path,
        method: 'POST',
        body: BODY,
        headers: { 'content-type': 'application/json', ...headers },
      };
      const answer = await pool.request(options as never);
      const text = await answer.body.text();
      if (answer.statusCode !== 200 || text.length < ANSWER.length)
        throw new Error(`${name} answered ${answer.statusCode}: ${text.slice(0, 200)}`);
      millis.push(performance.now() - began);
    }
  };
  const settledBefore = await settledCalls();
  const cpuBefore = pid === undefined ? 0 : cpuMicros(pid);
  const began = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  const seconds = (performance.now() - began) / 1000;
  // The work of a settle after the answer belongs to the call.
  await sleep(100);
  const cpu = pid === undefined ? Number.NaN : (cpuMicros(pid) - cpuBefore) / CALLS;
  await pool.destroy();
  const settled = (await settledCalls()) - settledBefore;
  if (settles && settled !== CALLS) throw new Error(`${name} settled ${settled} of ${CALLS} calls`);
  millis.sort((a, b) => a - b);
  return { cpuMicros: cpu, perSecond: CALLS / seconds, p50: at(millis, 0.5), p99: at(millis, 0.99) };
}

/** Entries of all usage streams. */
async function settledCalls(): Promise<number> {
  const partitions = Array.from({ length: PARTITIONS }, (_, id) => stack.redis.xlen(keys.usage(id)));
  return (await Promise.all(partitions)).reduce((sum, entries) => sum + entries, 0);
}

async function nginxSubjects(): Promise<Subject[]> {
  if (!existsSync('/usr/sbin/nginx')) return [];
  const [plain, lua] = [await freePort(), await freePort()];
  const grants = await Promise.all(urls.map((url) => grantOf(stack.redis, url)));
  const { redis } = stack;
  const scripts = await loadScripts(redis);
  const conf = join(dir, 'nginx.conf');
  writeFileSync(conf, nginxConf({ dir, upstreamPort, redisPort, plain, lua, grants, scripts }));
  const master = run('/usr/sbin/nginx', ['-c', conf, '-p', dir]) ?? 0;
  await Promise.all([listening(plain), listening(lua)]);
  const worker = Number(readFileSync(`/proc/${master}/task/${master}/children`, 'utf8').trim().split(' ')[0]);
  return [
    {
      name: 'nginx plain',
      origin: `http://127.0.0.1:${plain}`,
      paths: ['/v1/chat/completions'],
      pid: worker,
    },
    { name: 'nginx + Lua', origin: `http://127.0.0.1:${lua}`, paths, pid: worker, settles: true },
  ];
}

async function portkey(): Promise<Subject[]> {
  const folder = process.env.PORTKEY_DIR;
  if (folder === undefined) return [];
  const port = await freePort();
  const main = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  const pid = run(process.execPath, [main, '--headless', `--port=${port}`]);
  await listening(port);
  const headers = {
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${upstreamUrl}/v1`,
    authorization: 'Bearer sk-real',
  };
  return [
    { name: 'portkey', origin: `http://127.0.0.1:${port}`, paths: ['/v1/chat/completions'], headers, pid },
  ];
}

function at(sorted: readonly number[], quantile: number): number {
  return sorted[Math.floor(quantile * (sorted.length - 1))] ?? Number.NaN;
}

function print(): void {
  const median = (name: string, of: keyof Round) =>
    at(
      (rounds.get(name) ?? []).map((each) => each[of]).sort((a, b) => a - b),
      0.5,
    );
  const base = median('nginx + Lua', 'cpuMicros');
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}`);
  console.log(
    `${ROUNDS} interleaved rounds of ${CALLS} calls, ${CONNECTIONS} connections, ${TOKENS} tokens; medians`,
  );
  console.table(
    subjects.map(({ name }) => ({
      what: name,
      'CPU µs a call': Math.round(median(name, 'cpuMicros')),
      '× nginx + Lua': Number((median(name, 'cpuMicros') / base).toFixed(2)),
      'calls/s': Math.round(median(name, 'perSecond')),
      'p50 ms': Number(median(name, 'p50').toFixed(1)),
      'p99 ms': Number(median(name, 'p99').toFixed(1)),
    })),
  );
}
