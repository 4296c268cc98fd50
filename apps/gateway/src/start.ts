import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type RedisTimeouts, watchClock } from '@presign/limits';
import { guardedDispatcher, type OutboundProxy, type PrivateUpstreams } from '@presign/outbound';
import { keepLists, type ListSources } from '@presign/providers/keep-lists';
import { type Meter, NO_METER, watchReadiness, watchService } from '@presign/service/metrics';
import {
  AT_ONCE,
  drainServer,
  KEEP_ALIVE_MS,
  type Shutdown,
  withoutPublicPath,
} from '@presign/service/start';
import { createGateway, type Gateway } from './app.ts';
import type { GatewayDeps } from './deps.ts';
import { clientAddressReader } from './grant/bind.ts';
import { sendEnded } from './limits/ended-calls.ts';
import { startLeases } from './limits/leases.ts';
import { sendRefused } from './limits/refused-calls.ts';
import { createDoubts } from './limits/retry.ts';
import { watchRevocations } from './limits/revocations.ts';
import { boundWaiting } from './limits/waiting.ts';
import { createDisproved } from './llm/disproved.ts';
import { createListeners } from './mcp/open/listeners.ts';
import { OpenRequests } from './mcp/open/open-requests.ts';
import { gatewayMetrics, watchHolds, watchSockets, watchWaits } from './metrics.ts';
import { askStores } from './readiness.ts';
import { bodyMemory } from './share/body-memory.ts';
import { CountMemory } from './share/count-memory.ts';
import { discardRest } from './share/discard.ts';
import { createHosts } from './share/hosts.ts';
import { createOpenSockets, SOCKET_BOUNDS, type SocketBounds } from './share/open-sockets.ts';
import { type BoundListener, boundPipelining } from './share/pipelining.ts';
import { readQuota } from './share/read-quota.ts';
import { newTurns } from './share/turns.ts';
import { trackUnderWay } from './share/under-way.ts';
import { answerOn } from './socket/answer-raw.ts';
import { serveWithoutUpgrade } from './socket/without-upgrade.ts';
import { startBodyWorkers } from './workers/body-workers.ts';

/** A listening gateway. */
export type RunningGateway = {
  readonly port: number;
  /** Drains, cuts calls that exceed the grace period, and settles all. Connections to stores stay open. */
  readonly close: (shutdown?: Partial<Shutdown>) => Promise<void>;
};

/** The dependencies that `startGateway` creates itself. */
type OwnDeps =
  | (
      | 'dispatcher'
      | 'leases'
      | 'refusedCalls'
      | 'endedCalls'
      | 'revocations'
      | 'underWay'
      | 'draining'
      | 'closing'
      | 'listeners'
    )
  | (
      | 'openRequests'
      | 'metrics'
      | 'clock'
      | 'readiness'
      | 'clientAddress'
      | 'providers'
      | 'prices'
      | 'knowledge'
      | 'bodyMemory'
      | 'turns'
      | 'bodyWorkers'
      | 'readQuota'
      | 'uncounted'
      | 'counts'
      | 'disproved'
      | 'doubts'
      | 'waiting'
      | 'waits'
      | 'hosts'
      | 'sockets'
    );

export type GatewayOptions = Omit<GatewayDeps, OwnDeps> &
  ListSources & {
    readonly allowPrivateUpstreams: PrivateUpstreams;
    /** The proxy for https. */
    readonly proxy?: OutboundProxy | undefined;
    /** The address of Redis, unless it runs in this process: a thread renews leases there. */
    readonly redisUrl?: string | undefined;
    /** How long the renewing thread waits for Redis. */
    readonly redisTimeouts?: RedisTimeouts | undefined;
    /** The text of `PROVIDERS_FILE`. Each worker parses it, too. */
    readonly providersFile: string | undefined;
    /** How many bytes of request bodies may be in memory at once. */
    readonly maxHeldBodyBytes: number;
    /** The largest buffered body, in bytes. */
    readonly maxBodyBytes: number;
    /** The metrics. Undefined: off. */
    readonly meter?: Meter;
    /** The trusted proxies of `X-Forwarded-For`: addresses and CIDR ranges. */
    readonly trustedProxies?: readonly string[] | undefined;
    /** Bounds of sockets that are not the defaults. */
    readonly socketBounds?: Partial<SocketBounds> | undefined;
    /** How long an idle connection stays open. */
    readonly keepAliveMs?: number;
  };

/** How long a cut call may take for its last bytes. */
const CUT_MS = 1_000;
/** An upload may take as long as an answer. Only headers have a time limit. */
const TIMEOUTS = { requestTimeout: 0, headersTimeout: 30_000 };

/** Listens, renews leases and sweeps. Port 0 selects a free port. */
export async function startGateway(
  options: GatewayOptions,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningGateway> {
  const dispatcher = guardedDispatcher(options.allowPrivateUpstreams, options.proxy);
  const lists = await keepLists({ ...options, dispatcher });
  const { prices, knowledge } = lists;
  const meter = options.meter ?? NO_METER;
  const metrics = gatewayMetrics(meter);
  const leases = startLeases({ ...options, metrics });
  watchHolds(meter, leases);
  const revocations = watchRevocations(options.redis, metrics.work('revocations'));
  const clock = watchClock(options.redis, options.now, options.log);
  const readiness = askStores(options);
  watchReadiness(meter, 'gateway', readiness);
  watchService(meter, { name: 'gateway', clock, prices, knowledge, now: options.now });
  const underWay = trackUnderWay();
  const draining = new AbortController();
  const closing = new AbortController();
  // Every open stream adds a listener.
  setMaxListeners(0, closing.signal);
  const listeners = createListeners(options.redis);
  const quota = readQuota(options.now);
  const bodyWorkers = startBodyWorkers({ ...options, prices, knowledge }, quota);
  const own = {
    metrics,
    clock,
    readiness,
    dispatcher,
    leases,
    waits: watchWaits(meter),
    revocations,
    underWay,
    listeners,
    bodyWorkers,
    prices,
    knowledge,
    providers: knowledge.providers,
    readQuota: quota,
    openRequests: new OpenRequests(listeners),
    refusedCalls: sendRefused(options.redis, options.now, metrics.work('refused_calls')),
    endedCalls: sendEnded(options.redis, metrics.work('ended_calls')),
    clientAddress: clientAddressReader(options.trustedProxies ?? []),
    draining: draining.signal,
    closing: closing.signal,
    ...processMemory(options, metrics),
  };
  watchSockets(meter, own.sockets);
  const server = serverOf(createGateway({ ...options, ...own }), options);
  const port = await listening(server, listen);
  const close = async (shutdown: Partial<Shutdown> = {}) => {
    draining.abort();
    const stopCut = await drain(server, { ...own, closing }, { ...AT_ONCE, ...shutdown });
    // Answers whose holder has disconnected are still read to their end, because their usage is charged.
    await underWay.done();
    stopCut();
    await lists.close();
    await leases.close();
    await own.refusedCalls.close();
    await own.endedCalls.close();
    for (const each of [revocations, clock, listeners, own.sockets]) each.close();
    await bodyWorkers.close();
    await dispatcher.destroy();
  };
  return { port, close };
}

/**
 * Lets running calls end, and cuts the remaining ones after `graceMs`.
 * @returns a function that cancels the cut, once the server is drained
 */
async function drain(
  server: Server,
  { dispatcher, sockets, closing }: Draining,
  { drainMs, graceMs }: Shutdown,
): Promise<() => void> {
  let grace: NodeJS.Timeout | undefined;
  const cut = () => {
    // Ends the calls to upstreams first, so that their holders still get an error.
    void dispatcher.destroy();
    sockets.cutAll();
    grace = setTimeout(() => server.closeAllConnections(), CUT_MS);
  };
  await drainServer(server, drainMs, () => {
    closing.abort();
    sockets.stopAll();
    grace = setTimeout(cut, Math.max(0, graceMs - drainMs));
  });
  return () => clearTimeout(grace);
}

type Draining = Pick<GatewayDeps, 'dispatcher' | 'sockets'> & { readonly closing: AbortController };

/** The memory of this process, in no store. */
const processMemory = (
  { maxHeldBodyBytes, maxBodyBytes, socketBounds }: GatewayOptions,
  { settleDropped }: GatewayDeps['metrics'],
) => ({
  sockets: createOpenSockets({ ...SOCKET_BOUNDS, ...socketBounds }),
  uncounted: new Set<string>(),
  counts: new CountMemory(),
  disproved: createDisproved(),
  waiting: boundWaiting(settleDropped),
  hosts: createHosts(),
  doubts: createDoubts(),
  turns: newTurns(),
  bodyMemory: bodyMemory(maxHeldBodyBytes, maxBodyBytes),
});

/** How the paths of the gateway begin. */
const ROUTES = /\/(?:llm\/t\/|mcp\/(?:mcp|sse|bundle)\b|healthz|readyz)/;

/** The server of a gateway's requests and sockets. */
function serverOf(gateway: Gateway, { gatewayUrl, keepAliveMs = KEEP_ALIVE_MS }: GatewayOptions): Server {
  const ownTarget = withoutPublicPath(gatewayUrl, ROUTES);
  const bound = boundPipelining(listenerOf(gateway, ownTarget));
  const server = createServer({ ...TIMEOUTS, keepAliveTimeout: keepAliveMs }, bound.listener);
  return server.on('upgrade', upgradeOf(server, gateway, bound, ownTarget));
}

/**
 * Handles upgrades, which Node passes with their connection. All except sockets are answered as requests. Upgrades to MCP are served
 * without the upgrade.
 */
const upgradeOf =
  (
    server: Server,
    { isSocket, serveSocket }: Gateway,
    { listener, isServing }: BoundListener,
    ownTarget: OwnTarget,
  ) =>
  (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Its answer would overtake those of earlier requests.
    if (isServing(socket)) return void socket.destroy();
    const url = ownTarget(incoming.url ?? '');
    // The server has its own listener for errors of a connection that it reads again.
    if (url.startsWith('/mcp/')) return void serveWithoutUpgrade(server, incoming, socket, head);
    socket.on('error', () => {});
    if (isSocket(Object.assign(incoming, { url }))) void serveSocket(incoming, socket, head);
    else listener(incoming, answerOn(incoming, socket) as never);
  };

type OwnTarget = (target: string) => string;

function listenerOf(
  { app, isPostCall, postCall, malformed }: Gateway,
  ownTarget: OwnTarget,
): RequestListener {
  // Hono answers HEAD with a copy of the answer to GET, which loses the marker RESPONSE_ALREADY_SENT.
  const answer = async (request: Request, env: HttpBindings) => {
    const response = await app.fetch(request, env);
    if (env.outgoing.headersSent) return RESPONSE_ALREADY_SENT;
    // Node would read a body that no route handles at full speed.
    discardRest(env.incoming);
    return response;
  };
  const listener = getRequestListener(answer as Parameters<typeof getRequestListener>[0], {
    // HTTP/1.0 requests need no `Host` (RFC 9112 §3.2).
    hostname: 'localhost',
    // A call reads its body itself.
    autoCleanupIncoming: false,
    errorHandler: malformed,
  });
  return (incoming, outgoing) => {
    incoming.url = ownTarget(incoming.url ?? '');
    void (isPostCall(incoming) ? postCall : listener)(incoming, outgoing);
  };
}

/** Returns the port. */
function listening(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}
