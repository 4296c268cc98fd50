import type { Server } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { createGateway, type GatewayDeps } from './app.ts';
import { guardedDispatcher, type PrivateUpstreams } from './guard-address.ts';
import { startLeases } from './leases.ts';
import { trackSettling } from './settling.ts';

/** A listening gateway. */
export type RunningGateway = {
  readonly port: number;
  /** Stops accepting, lets calls under way end (cut after `graceMs`), settles. Stores stay open. */
  readonly close: (graceMs?: number) => Promise<void>;
};

export type GatewayOptions = Omit<GatewayDeps, 'dispatcher' | 'leases' | 'settling'> & {
  readonly allowPrivateUpstreams: PrivateUpstreams;
};

const GRACE_MS = 30_000;

/** Listens, keeps leases alive, sweeps. Port 0 takes a free one. */
export async function startGateway(
  options: GatewayOptions,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningGateway> {
  const dispatcher = guardedDispatcher(options.allowPrivateUpstreams);
  const leases = startLeases(options);
  const settling = trackSettling();
  const app = createGateway({ ...options, dispatcher, leases, settling });
  const server = createAdaptorServer({
    fetch: app.fetch,
    // A call reads its body itself; what is left unread after an answer is Node's to discard.
    autoCleanupIncoming: false,
    // A long upload is as good as a long answer: only headers must come in time.
    serverOptions: { requestTimeout: 0, headersTimeout: 30_000 },
  }) as Server;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const close = async (graceMs = GRACE_MS) => {
    const closed = new Promise((resolve) => server.close(resolve));
    // A connection kept alive is idle only once its last answer has left.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    await closed;
    clearInterval(idle);
    clearTimeout(cut);
    await settling.done();
    leases.close();
    await dispatcher.destroy();
  };
  const address = server.address();
  return { port: typeof address === 'object' && address ? address.port : listen.port, close };
}
