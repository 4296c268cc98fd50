import { execFileSync, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, constants, existsSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connectRedis, keys, type RedisClient, redisReady } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { freePort } from '@presign/test/harness/free-port.ts';
import { newKeys } from '@presign/test/harness/stack.ts';
import { Pool } from 'undici';
import { built, knownTo, listening, type Running, run, temporaryFolder } from '../processes.ts';

/** Everything behind the gateways and their peers. */
export type Services = {
  /** For files of the peers; ends with the machine's temporary files. */
  readonly dir: string;
  readonly redis: RedisClient;
  readonly redisPort: number;
  readonly upstream: { readonly port: number; readonly tlsPort: number };
  /** The certificate of the upstream that speaks TLS. */
  readonly certificate: string;
  /** How a subject runs: alone on its core, with its log in a pipe that a process on the other core reads. */
  readonly asSubject: Running;
  /** Starts an issuer or a gateway as its container does, on this Node. */
  readonly start: (
    app: 'gateway' | 'issuer',
    node: string,
    env?: Readonly<Record<string, string>>,
  ) => Promise<{ readonly pid: number; readonly port: number; readonly origin: string }>;
  /** Headers of an API key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Asks for so many URLs; returns their paths with their queries. */
  readonly issue: (route: string, body: object, count: number) => Promise<string[]>;
  /** Stops the issuer, so that the ledger takes no time from the measurement, or lets it go on. */
  readonly pauseIssuer: (isPaused: boolean) => Promise<void>;
  /** Entries of all usage streams. */
  readonly settled: () => Promise<number>;
  /** The costs of the last calls, one of each stream, in microdollars; '' if the cost is not known. */
  readonly lastCosts: () => Promise<string[]>;
  readonly forgetSettled: () => Promise<void>;
  /** Process ids of the stores and the issuer. */
  readonly pids: { readonly issuer: number; readonly postgres: number; readonly redis: readonly number[] };
  readonly issuerOrigin: string;
  readonly databaseUrl: string;
};

const cores = availableParallelism();
/** The core of the subjects, and the cores of everything else. Undefined: there is only one. */
const SUBJECT_CORE = cores > 1 ? '1' : undefined;
const OTHER_CORES = cores > 2 ? `0,2-${cores - 1}` : cores > 1 ? '0' : undefined;

/**
 * Starts Redis, Postgres, the upstream and an issuer. This process moves to their cores, and so do its children.
 * @param nodes masters of a Redis Cluster; 0 for a single server
 */
export async function startServices(node: string, nodes = 0): Promise<Services> {
  if (OTHER_CORES) execFileSync('taskset', ['-cp', OTHER_CORES, String(process.pid)], { stdio: 'ignore' });
  const dir = temporaryFolder('presign-bench-');
  const certificate = selfSigned(dir);
  const upstream = await startUpstream(dir);
  const stores = await startRedis(nodes);
  const redisPort = stores.ports[0] ?? 0;
  const { url: databaseUrl, pid: postgresPid } = await startPostgres();
  const apps = { issuer: built('issuer'), gateway: built('gateway') };
  migrate(apps.issuer, databaseUrl);
  const redis = connectRedis(stores.url, () => {});
  await redisReady(redis);

  const made = newKeys();
  const providers = join(dir, 'providers.json');
  writeFileSync(
    providers,
    JSON.stringify({
      openai: { base_url: `http://127.0.0.1:${upstream.port}` },
      tls: { extends: 'openai', base_url: `https://localhost:${upstream.tlsPort}`, ...PRICED },
    }),
  );
  const shared = {
    HOST: '127.0.0.1',
    GATEWAY_URL: 'http://gateway.example.com',
    DATABASE_URL: databaseUrl,
    REDIS_URL: stores.url,
    ENCRYPTION_KEYS: made.encryption,
    PROVIDERS_FILE: providers,
    ALLOW_PRIVATE_UPSTREAMS: 'true',
    NODE_EXTRA_CA_CERTS: certificate,
  };
  const own = {
    issuer: {
      TOKEN_SIGNING_KEY: made.signing,
      BOOTSTRAP_API_KEY: made.apiKey,
      API_REQUESTS_PER_MINUTE: '1000000',
    },
    gateway: { TOKEN_PUBLIC_KEYS: made.publicKeys },
  };
  const asSubject = { cores: SUBJECT_CORE, log: logPipe(dir), cwd: dir };
  const start: Services['start'] = async (app, node, more = {}) => {
    const port = await freePort();
    const { args, env } = apps[app];
    const ports = { ISSUER_PORT: String(port), GATEWAY_PORT: String(port) };
    const pid = run(
      node,
      knownTo(node, args),
      { ...env, ...shared, ...own[app], ...ports, ...more },
      asSubject,
    );
    await listening(port);
    const origin = `http://127.0.0.1:${port}`;
    await isReady(origin);
    return { pid, port, origin };
  };
  const issuer = await start('issuer', node);
  const headers = { authorization: `Bearer ${made.apiKey}`, 'content-type': 'application/json' };
  const pool = new Pool(issuer.origin, { connections: 16 });
  const streams = Array.from({ length: PARTITIONS }, (_, id) => keys.usage(id));
  return {
    ...{ dir, redis, redisPort, upstream, certificate, asSubject, start, headers, databaseUrl },
    pids: { issuer: issuer.pid, postgres: postgresPid, redis: stores.pids },
    issuerOrigin: issuer.origin,
    issue: async (route, body, count) => {
      const one = async () => {
        const answer = await pool.request({
          path: route,
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        });
        const issued = (await answer.body.json()) as Issued;
        const url = issued.url ?? Object.values(issued.servers ?? {})[0]?.url;
        if (url === undefined) throw new Error(`${route} answered ${JSON.stringify(issued)}`);
        return url.slice(new URL(url).origin.length);
      };
      return Promise.all(Array.from({ length: count }, one));
    },
    pauseIssuer: async (isPaused) => {
      process.kill(issuer.pid, isPaused ? 'SIGSTOP' : 'SIGCONT');
    },
    settled: async () => {
      const entries = await Promise.all(streams.map((stream) => redis.xrange(stream, '-', '+')));
      return entries.flat().filter((entry) => !isEnd(entry)).length;
    },
    lastCosts: async () => {
      // The ends of MCP calls come behind their charges.
      const entries = await Promise.all(
        streams.map((stream) => redis.xrevrange(stream, '+', '-', 'COUNT', 10)),
      );
      const last = entries.map((each) => each.find((entry) => !isEnd(entry)));
      return last.flatMap((entry) => (entry ? [entry[1][entry[1].indexOf('cost') + 1] ?? ''] : []));
    },
    forgetSettled: async () => {
      await Promise.all(streams.map((stream) => redis.xtrim(stream, 'MAXLEN', 0)));
    },
  };
}

/** Whether an entry of a usage stream says how charged calls ended, and is no call. */
const isEnd = ([, fields]: [string, string[]]): boolean => fields[fields.indexOf('outcome') + 1] === 'ended';

type Issued = {
  readonly url?: string;
  readonly servers?: Readonly<Record<string, { readonly url: string }>>;
};

// A rewrite of the file at a random moment would hit one subject and not the next.
const DURABLE = [
  ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'],
  ...['--auto-aof-rewrite-percentage', '0'],
];
const PRICED = { pricing: { 'gpt-4o-mini': { input: 150_000, output: 600_000 } } };

/** A single server, or the masters of a Cluster. */
async function startRedis(nodes: number): Promise<{ url: string; ports: number[]; pids: number[] }> {
  const ports: number[] = [];
  const pids: number[] = [];
  for (let i = 0; i < Math.max(1, nodes); i++) {
    // The bus of a node is 10,000 ports above it, by default.
    const [port, bus] = [await freePort(), await freePort()];
    const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', temporaryFolder('presign-redis-')];
    const clustered = nodes > 0 ? ['--cluster-enabled', 'yes', '--cluster-port', String(bus)] : [];
    pids.push(run('redis-server', [...place, ...DURABLE, ...clustered]));
    await listening(port);
    ports.push(port);
  }
  const hosts = ports.map((port) => `127.0.0.1:${port}`);
  if (nodes === 0) return { url: `redis://${hosts[0]}`, ports, pids };
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] as ('ignore' | 'inherit')[] };
  execFileSync('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-yes'], quiet);
  for (const port of ports) await clusterIsUp(port);
  return { url: `redis+cluster://${hosts}`, ports, pids };
}

async function clusterIsUp(port: number): Promise<void> {
  const ask = () => execFileSync('redis-cli', ['-p', String(port), 'cluster', 'info'], { encoding: 'utf8' });
  for (let tries = 0; tries < 100; tries++) {
    if (ask().includes('cluster_state:ok')) return;
    await sleep(100);
  }
  throw new Error(`the Redis Cluster did not come up: ${ask()}`);
}

async function isReady(origin: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if ((await fetch(`${origin}/readyz`)).ok) return;
    await sleep(100);
  }
  throw new Error(`${origin} is not ready: ${await (await fetch(`${origin}/readyz`)).text()}`);
}

/** Migrates by the program of the checkout, whose schema may be another one. */
function migrate({ args, env }: ReturnType<typeof built>, databaseUrl: string): void {
  const program = args.map((arg) => arg.replace(/main\.js$/, 'migrate.js'));
  execFileSync(process.execPath, program, {
    env: { PATH: process.env.PATH, ...env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function startUpstream(dir: string): Promise<Services['upstream']> {
  const path = fileURLToPath(new URL('./upstream.ts', import.meta.url));
  const child = fork(path, [join(dir, 'key.pem'), join(dir, 'certificate.pem')], {
    execArgv: process.execArgv,
  });
  process.on('exit', () => child.kill('SIGKILL'));
  const [ports] = (await once(child, 'message')) as [Services['upstream']];
  return ports;
}

function selfSigned(dir: string): string {
  const certificate = join(dir, 'certificate.pem');
  const files = ['-keyout', join(dir, 'key.pem'), '-out', certificate];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const kind = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
  ];
  execFileSync('openssl', [...kind, ...files, ...names], { stdio: 'ignore' });
  return certificate;
}

/** The writing end of a named pipe that `cat` empties. */
function logPipe(dir: string): number {
  const path = join(dir, 'log');
  execFileSync('mkfifo', [path]);
  run('cat', [path]);
  return openSync(path, constants.O_WRONLY);
}

/** A Postgres of its own, as Debian installs it and with its defaults. It refuses to run as root. */
async function startPostgres(): Promise<Postgres> {
  const data = temporaryFolder('presign-bench-postgres-');
  const user = postgresUser(data);
  const trust = ['-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C'];
  execFileSync(`${POSTGRES_BIN}initdb`, trust, { ...user, stdio: ['ignore', 'ignore', 'inherit'] });
  return serve(data, user);
}

/** A replica that streams from this Postgres and answers queries that only read. */
export async function startReplica(primaryUrl: string): Promise<Postgres> {
  const data = temporaryFolder('presign-bench-replica-');
  const user = postgresUser(data);
  const copy = ['-d', primaryUrl, '-D', data, '-R', '-X', 'stream', '-c', 'fast'];
  execFileSync(`${POSTGRES_BIN}pg_basebackup`, copy, { ...user, stdio: ['ignore', 'ignore', 'inherit'] });
  return serve(data, user);
}

type Postgres = { readonly url: string; readonly pid: number };

const POSTGRES_BIN = (() => {
  const installed = '/usr/lib/postgresql';
  const newest = existsSync(installed) ? readdirSync(installed).sort().at(-1) : undefined;
  return newest === undefined ? '' : join(installed, newest, 'bin/');
})();

function postgresUser(data: string): { cwd: string; uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return { cwd: data };
  const [uid, gid] = [idOf('-u'), idOf('-g')];
  chownSync(data, uid, gid);
  chmodSync(data, 0o700);
  return { cwd: data, uid, gid };
}

async function serve(data: string, user: ReturnType<typeof postgresUser>): Promise<Postgres> {
  const port = await freePort();
  const own = ['-c', 'unix_socket_directories=', '-c', 'log_min_messages=panic'];
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', ...own];
  const pid = run(`${POSTGRES_BIN}postgres`, args, {}, user);
  await listening(port);
  // It listens before it takes queries.
  const isReady = () =>
    spawnSync(`${POSTGRES_BIN}pg_isready`, ['-q', '-h', '127.0.0.1', '-p', String(port), '-U', 'postgres']);
  while (isReady().status !== 0) await sleep(50);
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, pid };
}

const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
