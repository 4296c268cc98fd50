import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { guardedDispatcher, type PrivateUpstreams } from '@presign/outbound';
import { createGateway, type GatewayDeps } from './app.ts';
import { createClosing } from './closing.ts';
import { bodyBudget } from './http/body-memory.ts';
import { refusalAnswer } from './http/refuse.ts';
import { startLeases } from './limits/leases.ts';
import { watchRevocations } from './limits/revocations.ts';
import { createListeners } from './mcp/legacy-sse.ts';
import { trackUnderWay } from './under-way.ts';

/** A listening gateway. */
export type RunningGateway = {
  readonly port: number;
  /** Stops accepting, lets calls under way end (cut after `graceMs`), settles. Stores stay open. */
  readonly close: (graceMs?: number) => Promise<void>;
};

/** What a gateway makes for itself. */
type OwnDeps = 'dispatcher' | 'leases' | 'revocations' | 'underWay' | 'bodyBudget' | 'closing' | 'listeners';

export type GatewayOptions = Omit<GatewayDeps, OwnDeps> & {
  readonly allowPrivateUpstreams: PrivateUpstreams;
  /** The most bytes of request bodies that are in memory at once. */
  readonly maxHeldBodyBytes: number;
};

const GRACE_MS = 30_000;
const HEADERS_TIMEOUT_MS = 30_000;
const UNREADABLE = 'The request target or the Host header is malformed.';

/** Listens, keeps leases alive, sweeps. Port 0 takes a free one. */
export async function startGateway(
  options: GatewayOptions,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningGateway> {
  const dispatcher = guardedDispatcher(options.allowPrivateUpstreams);
  const leases = startLeases(options);
  const revocations = watchRevocations(options.redis);
  const underWay = trackUnderWay();
  const closing = createClosing();
  const listeners = createListeners(options.redis);
  const own = {
    ...{ dispatcher, leases, revocations, underWay, closing, listeners },
    bodyBudget: bodyBudget(options.maxHeldBodyBytes),
  };
  const app = createGateway({ ...options, ...own });
  // Hono answers HEAD with a copy of its answer to GET, which no longer says that it has been sent.
  const answer = async (request: Request, env: HttpBindings) => {
    const response = await app.fetch(request, env);
    return env.outgoing.headersSent ? RESPONSE_ALREADY_SENT : response;
  };
  const listener = getRequestListener(answer as Parameters<typeof getRequestListener>[0], {
    // For HTTP/1.0, where `Host` is optional (RFC 9112 §3.2).
    hostname: 'localhost',
    // A call reads its body itself; what is left unread after an answer is Node's to discard.
    autoCleanupIncoming: false,
    errorHandler: () => refusalAnswer({ code: 'invalid_request', message: UNREADABLE }, randomUUID()),
  });
  // A long upload is as good as a long answer: only headers must come in time.
  const server = createServer({ requestTimeout: 0, headersTimeout: HEADERS_TIMEOUT_MS }, listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const close = async (graceMs = GRACE_MS) => {
    const closed = new Promise((resolve) => server.close(resolve));
    closing.begin();
    // A connection kept alive is idle only once its last answer has left.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const cut = setTimeout(() => {
      server.closeAllConnections();
      void dispatcher.destroy();
    }, graceMs);
    await closed;
    clearInterval(idle);
    // An answer whose holder has left is still read to its end, for what it came to.
    await underWay.done();
    clearTimeout(cut);
    leases.close();
    revocations.close();
    listeners.close();
    await dispatcher.destroy();
  };
  const address = server.address();
  return { port: typeof address === 'object' && address ? address.port : listen.port, close };
}
