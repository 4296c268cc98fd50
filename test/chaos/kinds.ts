import { startBillingProvider } from './billing-provider.ts';
import { startSocketBilling } from './billing-sockets.ts';
import type { Kind } from './kind.ts';
import { call, randomCall } from './load.ts';
import { newSocketCaller } from './socket-caller.ts';

export const POSTS: Kind = {
  ask: { path: '/v1/chat/completions' },
  lanes: 24,
  newCaller: () => ({ call: (url, model, random) => call(url, randomCall(model, random)), close: () => {} }),
  startProvider: startBillingProvider,
  env: {},
};

const SOCKETS_OPEN = 100;

/** Each lane has a socket, and opens another one after its end. There are as many places as sockets. */
export const SOCKETS: Kind = {
  ask: { path: '/v1/responses', sockets: true, concurrent_calls: SOCKETS_OPEN },
  lanes: SOCKETS_OPEN,
  newCaller: newSocketCaller,
  startProvider: startSocketBilling,
  // A socket whose place nothing has renewed for the most of a lease is cut. A gateway that starts under load must renew in time.
  env: { MAX_SOCKETS_PER_URL: String(SOCKETS_OPEN), HOLD_LEASE_SECONDS: '10' },
};
