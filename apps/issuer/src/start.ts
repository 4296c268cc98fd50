import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { createIssuer } from './app.ts';
import type { IssuerDeps } from './deps.ts';
import { type Ledger, startLedger } from './ledger/drain-ledger.ts';
import { startSweep } from './sweep.ts';
import { startWebhooks } from './webhooks/deliver.ts';

/** A listening issuer. */
export type RunningIssuer = {
  readonly port: number;
  readonly ledger: Ledger;
  /** Stops accepting, answers what is under way, drains the ledger, ends deliveries. Stores stay open. */
  readonly close: () => Promise<void>;
};

/** Listens, drains the ledger, delivers webhooks and sweeps. Port 0 takes a free one. */
export async function startIssuer(
  deps: IssuerDeps,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningIssuer> {
  const app = createIssuer(deps);
  const { server, port } = await new Promise<{ server: ReturnType<typeof serve>; port: number }>(
    (resolve, reject) => {
      const server = serve({ fetch: app.fetch, hostname: listen.host, port: listen.port }, (info) => {
        server.off('error', reject);
        resolve({ server, port: info.port });
      });
      server.once('error', reject);
    },
  );
  const ledger = startLedger(deps);
  const webhooks = startWebhooks(deps);
  const sweep = startSweep(deps);
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    // A connection kept alive is idle only once its last answer has left.
    const idle = setInterval(() => (server as Server).closeIdleConnections(), 50);
    await closed;
    clearInterval(idle);
    await sweep.close();
    await ledger.close();
    await webhooks.close();
  };
  return { port, ledger, close };
}
