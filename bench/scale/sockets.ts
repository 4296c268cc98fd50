/**
 * Sockets through one gateway, next to a bare pipe of `ws` and to nginx: memory and CPU time of idle ones, sound in events of 20 ms both ways,
 * and turns of Responses and of Realtime, next to a POST. Prints each figure, and its ratio to that of the pipe. Checks that each turn is
 * settled. Takes three minutes.
 *
 *     npx tsx bench/scale/sockets.ts
 *
 * `ROWS`: which of `idle`, `appends`, `audio`, `turns`. `SOCKETS`: idle ones, 10,000. `SPEAKERS`: sockets with sound, 500; each has 50 events a
 * second, so fewer are a smaller load. `SECONDS` of each row, 5. A socket takes two file descriptors of a proxy, so `ulimit -n` must be
 * above twice the number; else it opens fewer sockets. The gateway sends pings, the others none: every 18 seconds on each side.
 */

import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@presign/test/harness/free-port.ts';
import { childrenOf, cpuMicros, listening, rssOf, run } from '../processes.ts';
import { NEWER_NODES } from '../table/peers.ts';
import { type Services, startServices } from '../table/services.ts';
import type { Order, Report } from './socket-client.ts';

const { ROWS = 'idle,appends,audio,turns', SOCKETS = '10000', SPEAKERS = '500', SECONDS = '5' } = process.env;
const rows = ROWS.split(',');
const seconds = Number(SECONDS);
const URLS = 500;
/** Files of a proxy besides its sockets. */
const SPARE_FILES = 200;
/** One ping of each socket is in it. */
const IDLE_MS = 20_000;
const CONNECTIONS = 32;
const WARM_SECONDS = 3;

const files = Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
const sockets = Math.min(Number(SOCKETS), Math.floor((files - SPARE_FILES) / 2));
const speakers = Math.min(Number(SPEAKERS), sockets);
const node = NEWER_NODES.at(-1) ?? process.execPath;
const programOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const versionOf = (program: string) => execFileSync(program, ['-v'], { encoding: 'utf8' }).trim();
const loadAverage = () => loadavg()[0]?.toFixed(1);

type Dialect = 'responses' | 'realtime';

/** A proxy under test: `paths` lead through it to the provider. */
type Subject = {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  readonly paths: Readonly<Record<Dialect, readonly string[]>>;
  readonly settles: boolean;
  /** Its idle sockets. Memory that a process took once it keeps, so that another dialect needs another process. */
  readonly idle: Dialect;
};

const PIPE = 'ws, bare';
const PLAIN = { responses: ['/v1/responses'], realtime: ['/v1/realtime?model=gpt-realtime'] };

const provider = fork(programOf('socket-provider.ts'), [], { execArgv: process.execArgv });
process.on('exit', () => provider.kill('SIGKILL'));
const [providerPort] = (await once(provider, 'message')) as [number];
const services = await startServices(node);
const [gateway, ...otherGateways] = await startGateways(services);
const subjects = [await startPipe(services), gateway, await startNginx(services)].filter(
  (each) => each !== undefined,
);
/** The figures of the bare pipe, by name, which others are divided by. */
const ofPipe = new Map<string, number>();
console.log(`Node ${versionOf(node)}; ulimit -n is ${files}; the load was ${loadAverage()}`);
for (const row of rows)
  for (const subject of row === 'idle' ? [...subjects, ...otherGateways] : subjects) {
    if (row === 'idle') await measureIdle(subject);
    else if (row === 'turns')
      for (const kind of ['responses', 'realtime', 'posts'] as const) await measureTurns(subject, kind);
    else await measureSound(subject, row === 'audio' ? 'audio' : 'appends');
  }
console.log(`the load is ${loadAverage()}`);
process.exit();

async function startGateways({ dir, start, issue, pauseIssuer }: Services): Promise<Subject[]> {
  const file = join(dir, 'socket-providers.json');
  writeFileSync(file, JSON.stringify({ openai: { base_url: `http://127.0.0.1:${providerPort}` } }));
  const bounds = ['MAX_SOCKETS', 'MAX_SOCKETS_PER_ACCOUNT', 'MAX_SOCKETS_PER_URL'];
  const env = { PROVIDERS_FILE: file, ...Object.fromEntries(bounds.map((name) => [name, '100000'])) };
  const limits = { cost_limit: 1_000_000_000_000, expires_in: 86_400 };
  const ask = { provider: 'openai', client_api_key: 'sk-real', sockets: true, ...limits };
  const responses = await issue('/v1/presign', { ...ask, path: '/v1/responses' }, URLS);
  const realtime = await issue('/v1/presign', { ...ask, path: '/v1/realtime' }, URLS);
  await pauseIssuer(true);
  const paths = { responses, realtime: realtime.map((path) => `${path}?model=gpt-realtime`) };
  const gateways: Subject[] = [];
  for (const idle of ['realtime', 'responses'] as const)
    gateways.push({
      ...{ name: 'Presign', paths, settles: true, idle },
      ...(await start('gateway', node, env)),
    });
  return gateways;
}

async function startPipe({ asSubject }: Services): Promise<Subject> {
  const port = await freePort();
  const args = [programOf('../table/bare-socket.mjs'), String(port), `ws://127.0.0.1:${providerPort}`];
  const pid = run(node, args, {}, asSubject);
  await listening(port);
  return { name: PIPE, pid, port, paths: PLAIN, settles: false, idle: 'realtime' };
}

async function startNginx({ dir, asSubject }: Services): Promise<Subject | undefined> {
  const program = ['/usr/sbin/nginx', '/usr/bin/nginx'].find(existsSync);
  if (program === undefined) {
    console.log('skipped: nginx is not installed');
    return undefined;
  }
  const port = await freePort();
  const conf = join(dir, 'socket-nginx.conf');
  writeFileSync(
    conf,
    `daemon off; pid ${dir}/socket-nginx.pid; error_log ${dir}/socket-nginx.log; worker_processes 1; worker_rlimit_nofile ${files};
events { worker_connections ${2 * sockets + SPARE_FILES}; }
http {
  client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
  access_log off; keepalive_requests 1000000;
  upstream provider { server 127.0.0.1:${providerPort}; keepalive 64; keepalive_requests 1000000; }
  map $http_upgrade $connection_to_provider { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://provider; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 3600s;
      # Ports towards the provider are still taken by the subjects before.
      proxy_bind 127.0.0.2;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_to_provider;
    }
  }
}
`,
  );
  const master = run(program, ['-c', conf, '-p', dir], {}, asSubject);
  await listening(port);
  const [pid = master] = childrenOf(master);
  return { name: 'nginx', pid, port, paths: PLAIN, settles: false, idle: 'realtime' };
}

/** Starts a client with an order, and resolves with its next report. */
function startClient(order: Order) {
  const client = fork(programOf('socket-client.ts'), [], { execArgv: process.execArgv });
  const kill = () => client.kill('SIGKILL');
  process.on('exit', kill);
  const end = () => {
    process.off('exit', kill);
    kill();
  };
  client.send(order);
  return { end, report: async () => ((await once(client, 'message')) as [Report])[0] };
}

/** Prints figures of a subject, and how they compare with those of the pipe. */
function print(
  row: string,
  { name }: Subject,
  figures: Readonly<Record<string, number>>,
  more: string,
): void {
  const printed = Object.entries(figures).map(([unit, value]) => {
    const key = `${row.split(' ')[0]} ${unit}`;
    if (name === PIPE) ofPipe.set(key, value);
    const ratio = value / (ofPipe.get(key) ?? Number.NaN);
    const times = name === PIPE || !Number.isFinite(ratio) ? '' : ` (${ratio.toFixed(2)} × the pipe)`;
    return `${value.toFixed(value < 100 ? 1 : 0)} ${unit}${times}`;
  });
  console.log(`${row}: ${name}: ${[...printed, more].join('; ')}`);
}

async function measureIdle(subject: Subject): Promise<void> {
  const { pid, port, paths, idle } = subject;
  const order = { kind: 'idle', port, paths: paths[idle], seconds: 0 } as const;
  const warm = startClient({ ...order, connections: 200 });
  await warm.report();
  warm.end();
  await closedAt(pid);
  const beforeMb = rssOf(pid);
  const client = startClient({ ...order, connections: sockets });
  const { done, failed } = await client.report();
  await sleep(2_000);
  const [cpu, at] = [cpuMicros(pid), performance.now()];
  await sleep(IDLE_MS);
  const cpuUs = (cpuMicros(pid) - cpu) / done / ((performance.now() - at) / 1_000);
  const kb = ((rssOf(pid) - beforeMb) * 1_024) / done;
  const figures = { 'KB of memory a socket': kb, 'µs of CPU a second of a socket': cpuUs };
  print(`idle ${idle}`, subject, figures, `${done} open, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
  client.end();
  await closedAt(pid);
}

/** Resolves when a proxy has closed its sockets. The provider has files for those of one proxy alone. */
async function closedAt(pid: number): Promise<void> {
  while (readdirSync(`/proc/${pid}/fd`).length > SPARE_FILES) await sleep(100);
  await sleep(1_000);
}

/** Sound of 20 ms in each event. `audio`: it comes back, so that each is two events. */
async function measureSound(subject: Subject, kind: 'appends' | 'audio'): Promise<void> {
  const { pid, port, paths } = subject;
  const order = { kind, port, paths: paths.realtime, connections: speakers } as const;
  const warm = startClient({ ...order, seconds: WARM_SECONDS });
  await warm.report();
  warm.end();
  await closedAt(pid);
  const cpu = cpuMicros(pid);
  const client = startClient({ ...order, seconds });
  const { done, failed, p50 = 0, p99 = 0 } = await client.report();
  const cpuUs = (cpuMicros(pid) - cpu) / done / (kind === 'audio' ? 2 : 1);
  client.end();
  const times = kind === 'audio' ? { 'ms there and back, p50': p50, 'ms, p99': p99 } : {};
  const rate = `${speakers} sockets, ${(done / seconds).toFixed(0)} a second, ${failed} failed`;
  print(kind, subject, { 'µs of CPU an event': cpuUs, ...times }, rate);
  if (failed > 0) process.exitCode = 1;
  await closedAt(pid);
}

async function measureTurns(subject: Subject, kind: Dialect | 'posts'): Promise<void> {
  const { name, pid, port, paths, settles } = subject;
  // The pipe has no POST.
  if (kind === 'posts' && name === PIPE) return;
  const of = kind === 'posts' ? paths.responses : paths[kind];
  const order = { kind, port, paths: of, connections: CONNECTIONS } as const;
  const warm = startClient({ ...order, seconds: WARM_SECONDS });
  await warm.report();
  warm.end();
  await services.forgetSettled();
  const cpu = cpuMicros(pid);
  const client = startClient({ ...order, seconds });
  const { done, failed } = await client.report();
  await sleep(100);
  const cpuUs = (cpuMicros(pid) - cpu) / done;
  client.end();
  const settled = settles ? await services.settled() : done;
  const rate = `${(done / seconds).toFixed(0)} a second, ${failed} failed, ${settled} of ${done} settled`;
  print(`turns ${kind}`, subject, { [`µs of CPU a turn of ${kind}`]: cpuUs }, rate);
  if (failed > 0 || settled !== done) process.exitCode = 1;
}
