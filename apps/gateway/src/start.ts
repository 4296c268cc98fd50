import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { guardedDispatcher, type PrivateUpstreams } from '@presign/outbound';
import { loadProviders } from '@presign/providers';
import { keepPrices, NO_SOURCE, type PriceSchedule } from '@presign/providers/keep-prices';
import { createGateway } from './app.ts';
import type { GatewayDeps, UnderWay } from './deps.ts';
import { bodyMemory } from './http/body-memory.ts';
import { refusalAnswer } from './http/refuse.ts';
import { answerTurns } from './http/turns.ts';
import { startLeases } from './limits/leases.ts';
import { watchRevocations } from './limits/revocations.ts';
import { createListeners } from './mcp/legacy-sse.ts';
import { startBodyWorkers } from './workers/body-workers.ts';
import { readQuota } from './workers/read-quota.ts';

/** A listening gateway. */
export type RunningGateway = {
  readonly port: number;
  /** Stops accepting, waits up to `graceMs` for calls under way, and settles all. Connections to stores stay open. */
  readonly close: (graceMs?: number) => Promise<void>;
};

/** The dependencies that `startGateway` creates itself. */
type OwnDeps =
  | ('dispatcher' | 'leases' | 'revocations' | 'underWay' | 'closing' | 'listeners')
  | ('providers' | 'prices' | 'bodyMemory' | 'turns' | 'bodyWorkers' | 'readQuota' | 'uncounted');

export type GatewayOptions = Omit<GatewayDeps, OwnDeps> & {
  readonly allowPrivateUpstreams: PrivateUpstreams;
  /** The address of Redis, unless it runs in this process: a thread renews leases there. */
  readonly redisUrl?: string | undefined;
  /** The text of `PROVIDERS_FILE`. Each worker reads it, too. */
  readonly providersFile: string | undefined;
  /** The operator's price list. Undefined: the bundled one is the only one. */
  readonly priceSource?: PriceSchedule;
  /** How many bytes of request bodies may be in memory at once. */
  readonly maxHeldBodyBytes: number;
  /** The largest body that is read whole, in bytes. */
  readonly maxBodyBytes: number;
};

const GRACE_MS = 30_000;
const HEADERS_TIMEOUT_MS = 30_000;
const UNREADABLE = 'The request target or the Host header is malformed.';

/** Listens, renews leases and sweeps. Port 0 takes a free port. */
export async function startGateway(
  options: GatewayOptions,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningGateway> {
  const dispatcher = guardedDispatcher(options.allowPrivateUpstreams);
  const { priceSource = NO_SOURCE } = options;
  const prices = await keepPrices({ ...options, ...priceSource, dispatcher });
  const leases = startLeases(options);
  const revocations = watchRevocations(options.redis);
  const underWay = trackUnderWay();
  const closing = new AbortController();
  // Every open stream listens.
  setMaxListeners(0, closing.signal);
  const listeners = createListeners(options.redis);
  const quota = readQuota(options.now);
  const bodyWorkers = startBodyWorkers({ ...options, prices }, quota);
  const own = {
    ...{ dispatcher, prices, leases, revocations, underWay, listeners, bodyWorkers },
    providers: loadProviders(options.providersFile),
    readQuota: quota,
    uncounted: new Set<string>(),
    ...{ closing: closing.signal, turns: answerTurns() },
    bodyMemory: bodyMemory(options.maxHeldBodyBytes, options.maxBodyBytes),
  };
  const { app, isPostCall, postCall } = createGateway({ ...options, ...own });
  // Hono answers HEAD with a copy of the answer to GET, which loses the mark RESPONSE_ALREADY_SENT.
  const answer = async (request: Request, env: HttpBindings) => {
    const response = await app.fetch(request, env);
    return env.outgoing.headersSent ? RESPONSE_ALREADY_SENT : response;
  };
  const listener = getRequestListener(answer as Parameters<typeof getRequestListener>[0], {
    // HTTP/1.0 requests need no `Host` (RFC 9112 §3.2).
    hostname: 'localhost',
    // A call reads its body itself. Node discards what is unread after the answer.
    autoCleanupIncoming: false,
    errorHandler: () => refusalAnswer({ code: 'invalid_request', message: UNREADABLE }, randomUUID()),
  });
  // An upload may take as long as an answer. Only headers have a time limit.
  const server = createServer(
    { requestTimeout: 0, headersTimeout: HEADERS_TIMEOUT_MS },
    (incoming, outgoing) => void (isPostCall(incoming) ? postCall : listener)(incoming, outgoing),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const close = async (graceMs = GRACE_MS) => {
    const closed = new Promise((resolve) => server.close(resolve));
    closing.abort();
    // A kept-alive connection becomes idle only after its last answer.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const cut = setTimeout(() => {
      server.closeAllConnections();
      void dispatcher.destroy();
    }, graceMs);
    await closed;
    clearInterval(idle);
    // Answers whose holder has left are still read to their end, because their usage is charged.
    await underWay.done();
    clearTimeout(cut);
    await prices.close();
    await leases.close();
    revocations.close();
    listeners.close();
    await bodyWorkers.close();
    await dispatcher.destroy();
  };
  const address = server.address();
  return { port: typeof address === 'object' && address ? address.port : listen.port, close };
}

function trackUnderWay(): UnderWay {
  const pending = new Set<Promise<unknown>>();
  return {
    track: (work) => {
      pending.add(work);
      const remove = () => pending.delete(work);
      work.then(remove, remove);
    },
    done: async () => {
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
