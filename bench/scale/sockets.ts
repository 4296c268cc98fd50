/**
 * Sockets of Responses through one gateway, next to a bare pipe of `ws` and to nginx: the memory and the CPU time of idle ones, and
 * the CPU time of a turn, next to that of a POST. Checks that each turn is settled. Takes three minutes.
 *
 *     npx tsx bench/scale/sockets.ts [idle,turns] [10000]
 *
 * The first argument chooses rows. A socket takes two file descriptors of a proxy, so `ulimit -n` must be above twice the number; else it
 * opens fewer sockets. The gateway sends pings, the others none: every 18 seconds on each side.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@presign/test/harness/free-port.ts';
import { childrenOf, cpuMicros, listening, rssOf, run } from '../processes.ts';
import { NEWER_NODES } from '../table/peers.ts';
import { type Services, startServices } from '../table/services.ts';
import type { Order, Report } from './socket-client.ts';

const ROWS = ['idle', 'turns'] as const;
const URLS = 500;
/** Files of a proxy besides its sockets. */
const SPARE_FILES = 200;
/** One ping of each socket is in it. */
const IDLE_MS = 20_000;
const CONNECTIONS = 32;
const WARM_SECONDS = 4;
const SECONDS = 5;

const chosen = (process.argv[2] ?? ROWS.join()).split(',');
const files = Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
const sockets = Math.min(Number(process.argv[3] ?? 10_000), Math.floor((files - SPARE_FILES) / 2));
const node = NEWER_NODES.at(-1) ?? process.execPath;
const programOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A proxy under test: `paths` lead through it to the provider. */
type Subject = {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  readonly paths: readonly string[];
  readonly settles: boolean;
};

const provider = fork(programOf('socket-provider.ts'), [], { execArgv: process.execArgv });
process.on('exit', () => provider.kill('SIGKILL'));
const [providerPort] = (await once(provider, 'message')) as [number];
const services = await startServices(node);
const subjects = [await startGateway(services), await startPipe(services), await startNginx(services)].filter(
  (each) => each !== undefined,
);
console.log(`${sockets} sockets; ulimit -n is ${files}`);
for (const subject of chosen.includes('idle') ? subjects : []) await measureIdle(subject);
for (const subject of chosen.includes('turns') ? subjects : []) {
  await measureTurns(subject, 'turns');
  await measureTurns(subject, 'posts');
}
process.exit();

async function startGateway({ dir, start, issue, pauseIssuer }: Services): Promise<Subject> {
  const file = join(dir, 'socket-providers.json');
  writeFileSync(file, JSON.stringify({ openai: { base_url: `http://127.0.0.1:${providerPort}` } }));
  const gateway = await start('gateway', node, {
    PROVIDERS_FILE: file,
    MAX_SOCKETS: '100000',
    MAX_SOCKETS_PER_ACCOUNT: '100000',
  });
  const ask = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
  const limits = { cost_limit: 1_000_000_000_000, expires_in: 86_400 };
  const paths = await issue('/v1/presign', { ...ask, ...limits }, URLS);
  await pauseIssuer(true);
  return { name: 'Presign', ...gateway, paths, settles: true };
}

async function startPipe({ asSubject }: Services): Promise<Subject> {
  const port = await freePort();
  const args = [programOf('../table/bare-socket.mjs'), String(port), `ws://127.0.0.1:${providerPort}`];
  const pid = run(node, args, {}, asSubject);
  await listening(port);
  return { name: 'ws, bare', pid, port, paths: ['/v1/responses'], settles: false };
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
  return { name: 'nginx', pid, port, paths: ['/v1/responses'], settles: false };
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

async function measureIdle({ name, pid, port, paths }: Subject): Promise<void> {
  const beforeMb = rssOf(pid);
  const client = startClient({ kind: 'idle', port, paths, connections: sockets, seconds: 0 });
  const { done, failed } = await client.report();
  await sleep(2_000);
  const [cpu, at] = [cpuMicros(pid), performance.now()];
  await sleep(IDLE_MS);
  const seconds = (performance.now() - at) / 1_000;
  const cpuUs = (cpuMicros(pid) - cpu) / done / seconds;
  const kb = ((rssOf(pid) - beforeMb) * 1_024) / done;
  console.log(
    `idle: ${name}: ${done} open, ${failed} failed; ${kb.toFixed(1)} KB of memory and ${cpuUs.toFixed(2)} µs of CPU a second for each`,
  );
  if (failed > 0) process.exitCode = 1;
  client.end();
  // The provider has files for one of them alone.
  while (readdirSync(`/proc/${pid}/fd`).length > SPARE_FILES) await sleep(100);
  await sleep(2_000);
}

async function measureTurns(
  { name, pid, port, paths, settles }: Subject,
  kind: 'turns' | 'posts',
): Promise<void> {
  // The pipe has no POST.
  if (kind === 'posts' && name === 'ws, bare') return;
  const order = { kind, port, paths, connections: CONNECTIONS } as const;
  const warm = startClient({ ...order, seconds: WARM_SECONDS });
  await warm.report();
  warm.end();
  await services.forgetSettled();
  const cpu = cpuMicros(pid);
  const client = startClient({ ...order, seconds: SECONDS });
  const { done, failed } = await client.report();
  await sleep(100);
  const cpuUs = (cpuMicros(pid) - cpu) / done;
  client.end();
  const settled = settles ? await services.settled() : done;
  console.log(
    `${kind}: ${name}: ${cpuUs.toFixed(0)} µs of CPU each; ${(done / SECONDS).toFixed(0)} a second; ${failed} failed; ${settled} of ${done} settled`,
  );
  if (failed > 0 || settled !== done) process.exitCode = 1;
}
