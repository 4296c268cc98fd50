import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { NEWEST_MIGRATION } from '@presign/schema/migrations';
import { sql } from 'drizzle-orm';
import { problemOf } from './await-store.ts';
import { type Database, isDatabaseOutage, sqlState } from './database.ts';
import { VariableError } from './read-variable.ts';

/** Ends the process with exit code 1 and one line for the operator. */
type Fail = (error: unknown) => never;

/** The name of the variable that sets a port. */
type PortVariable = (port: number) => string;

/**
 * Runs a process. A start that fails ends it with one line.
 * @param portVariable names the variable of a port. Undefined: the process listens nowhere
 * @param start returns what SIGTERM and SIGINT call
 */
export function runProcess(
  name: string,
  portVariable: PortVariable | undefined,
  start: (fail: Fail) => Promise<() => Promise<void>>,
): void {
  const fail: Fail = (error) => {
    process.stderr.write(`presign ${name}: ${explainStart(error, portVariable)}\n`);
    process.exit(1);
  };
  let stop: (() => Promise<void>) | undefined;
  let isStopping = false;
  const end = (signal: 'SIGTERM' | 'SIGINT') => {
    // It has not started, so nothing is under way. A migration that is cut has not succeeded.
    if (!stop) process.exit(ENDED_BY_SIGNAL + constants.signals[signal]);
    // Ctrl-C reaches a process from its terminal and from pnpm. A repetition must not cut what the first one lets end.
    if (!isStopping) stop().then(endLater, fail);
    isStopping = true;
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, end);
  const run = async () => {
    stop = await start(fail);
  };
  run().catch(fail);
}

/** A log that no reader takes may still wait then. It must not keep the process. */
const endLater = () => void setTimeout(() => process.exit(0), 1_000).unref();

/** Shells add it to the number of a signal. */
const ENDED_BY_SIGNAL = 128;

/** Why a start failed, in one line for the operator. It quotes nothing that was sent to Postgres. */
export function explainStart(error: unknown, portVariable?: PortVariable): string {
  if (!(error instanceof Error)) return 'failed to start';
  const listening = portVariable && explainListen(error, portVariable);
  if (listening !== undefined) return listening;
  const state = sqlState(error);
  const code = state === undefined ? '' : ` (${state})`;
  if (isDatabaseOutage(error) && state !== READ_ONLY) return `DATABASE_URL: Postgres does not answer${code}`;
  if (state === UNDEFINED_TABLE) {
    return 'DATABASE_URL: the tables are missing: run "npx -y pnpm@12 --filter @presign/issuer migrate" first';
  }
  if (state === RAISED) return firstCause(error).message;
  return state === undefined ? error.message : `DATABASE_URL: Postgres ${problemOf(error)}${code}`;
}

/** Why a server cannot listen. Undefined: the error is another one. */
function explainListen(error: Error, portVariable: PortVariable): string | undefined {
  const { code, syscall, port } = error as NodeJS.ErrnoException & { readonly port?: number };
  if (syscall === 'getaddrinfo' || code === 'EADDRNOTAVAIL')
    return `HOST: this machine has no such address to listen on (${code})`;
  if (port === undefined) return undefined;
  if (code === 'EADDRINUSE')
    return `${portVariable(port)}: port ${port} is taken. Stop what listens there, or set another port`;
  if (code === 'EACCES')
    return `${portVariable(port)}: this user may not listen on port ${port}. Set another port`;
  return undefined;
}

/** PostgreSQL manual, appendix A. */
const UNDEFINED_TABLE = '42P01';
const INSUFFICIENT_PRIVILEGE = '42501';
const READ_ONLY = '25006';
/** By a statement of a migration, in words of our own. */
const RAISED = 'P0001';

const firstCause = (error: Error): Error => (error.cause instanceof Error ? firstCause(error.cause) : error);

/**
 * Fails if the tables are those of an older version, in which statements of this one would fail one by one. Tables of a newer
 * version are good.
 * @throws an error for `explainStart`
 */
export async function requireTables(db: Database): Promise<void> {
  const newest = sql`select max(created_at)::text as newest from drizzle.__drizzle_migrations`;
  try {
    const [row] = await db.execute(newest);
    if (Number(row?.['newest']) >= NEWEST_MIGRATION) return;
  } catch (error) {
    // Another user may have made the tables, and keep the list of migrations for itself.
    if (sqlState(error) === INSUFFICIENT_PRIVILEGE) return;
    throw error;
  }
  throw new Error(
    'DATABASE_URL: the tables are of an older version: run "npx -y pnpm@12 --filter @presign/issuer migrate" first',
  );
}

/** How a server ends, in ms from the signal. */
export type Shutdown = {
  /** How long it serves on, while `/readyz` says unready and each answer closes its connection. */
  readonly drainMs: number;
  /** When calls that still run are cut. */
  readonly graceMs: number;
};

/**
 * How a service stops, by its variables.
 * @throws VariableError when it would drain for longer than its grace
 */
export function shutdownOf(drainSeconds: number, graceSeconds: number): Shutdown {
  if (graceSeconds < drainSeconds)
    throw new VariableError('SHUTDOWN_GRACE_SECONDS', 'is less than SHUTDOWN_DRAIN_SECONDS');
  return { drainMs: drainSeconds * 1_000, graceMs: graceSeconds * 1_000 };
}

/** A `Shutdown` for a server without a load balancer before it. */
export const AT_ONCE: Shutdown = { drainMs: 0, graceMs: 30_000 };

/**
 * Ends a server so that a load balancer loses no request. The server continues for `drainMs`, in which the load balancer sees that
 * `/readyz` says unready. Only then it refuses connections and closes idle ones. Resolves when no connection is open.
 * @param onRefusing called when it begins to refuse connections
 */
export async function drainServer(server: Server, drainMs: number, onRefusing: () => void): Promise<void> {
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false;
  });
  if (drainMs > 0) await sleep(drainMs);
  const closed = new Promise((resolve) => server.once('close', resolve));
  await refuseConnections(server);
  onRefusing();
  // A kept-alive connection becomes idle only after its last answer.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  await closed;
  clearInterval(idle);
}

/** So short that hardly a connection arrives meanwhile. A turn without work takes about 3 µs. */
const QUIET_TURN_MS = 0.1;
/** A busy service may have no quiet turn. */
const ACCEPTING_MS = 2_000;
/** A process that has slept is rarely interrupted at once. */
const REST_MS = 5;

/**
 * Stops listening, once the connections that have arrived are accepted. Connections that wait when a server closes are reset, and a
 * load balancer repeats no call that it has sent. Node accepts one in each turn of its event loop (libuv since 1.45, pull request
 * 3696). So this waits for a short turn without any, and closes in that turn. Any step in between would let connections arrive.
 */
async function refuseConnections(server: Server): Promise<void> {
  await closeOnce();
  let accepted = 0;
  const count = () => void accepted++;
  server.on('connection', count);
  await sleep(REST_MS);
  const end = performance.now() + ACCEPTING_MS;
  return new Promise((resolve) => {
    const look = (before: number, began: number) => {
      const now = performance.now();
      const isQuiet = accepted === before && now - began < QUIET_TURN_MS;
      if (!isQuiet && now < end) return void setImmediate(look, accepted, now);
      stopListening(server);
      // Begun first, it would end all idle connections before it stops listening.
      server.close();
      server.off('connection', count);
      resolve();
    };
    // The turn that this began in may have asked the system for connections already. Every later one asks.
    setImmediate(() => setImmediate(look, accepted, performance.now()));
  });
}

const stopListening = (server: TcpServer) => TcpServer.prototype.close.call(server);

/** Closes a server of its own: the first close of a process compiles its code, and so takes 100 µs instead of 17. */
async function closeOnce(): Promise<void> {
  const server = new TcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  stopListening(server);
  await once(server, 'close');
}

/**
 * Longer than load balancers keep an idle connection: the one that closes it must not be the one that may be sent a request
 * at that moment.
 */
export const KEEP_ALIVE_MS = 620_000;

/**
 * Makes a function that takes the path of a service's public URL off a request target, because a proxy may pass that path on. It
 * does so only before one of the service's own routes, so a target from which the proxy has taken the path stays as it is.
 * @param routes how the service's own paths begin
 */
export function withoutPublicPath(publicUrl: string, routes: RegExp): (target: string) => string {
  const path = new URL(publicUrl).pathname.replace(/\/$/, '');
  if (path === '') return (target) => target;
  // A target may have scheme and authority (RFC 9112 §3.2.2).
  const leading = new RegExp(`^((?:\\w+://[^/?#]*)?)${path.replace(/[^\w/]/g, '\\$&')}(?=${routes.source})`);
  return (target) => target.replace(leading, '$1');
}
