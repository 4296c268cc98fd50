import { startBillingProvider } from './billing-provider.ts';
import { startRealtimeBilling } from './billing-realtime.ts';
import { startSocketBilling } from './billing-sockets.ts';
import type { Kind } from './kind.ts';
import { call, randomCall } from './load.ts';
import { REALTIME_TURNS, RESPONSES_TURNS, socketCallers } from './socket-caller.ts';

export const POSTS: Kind = {
  ask: { path: '/v1/chat/completions' },
  lanes: 24,
  newCaller: () => ({ call: (url, model, random) => call(url, randomCall(model, random)), close: () => {} }),
  startProvider: startBillingProvider,
  limitASecond: 2_000_000,
  env: {},
};

const SOCKETS_OPEN = 100;

/** Each lane has a socket, and opens another one after its end. There are as many places as sockets. */
export const SOCKETS: Kind = {
  ask: { path: '/v1/responses', sockets: true, concurrent_calls: SOCKETS_OPEN },
  lanes: SOCKETS_OPEN,
  newCaller: socketCallers(RESPONSES_TURNS),
  startProvider: startSocketBilling,
  limitASecond: 2_000_000,
  // A socket whose place nothing has renewed for the most of a lease is cut. A gateway that starts under load must renew in time.
  env: { MAX_SOCKETS_PER_URL: String(SOCKETS_OPEN), HOLD_LEASE_SECONDS: '10' },
};

const SESSIONS_OPEN = 50;

/** The same in Realtime. Each turn holds more than a dollar. */
export const REALTIME: Kind = {
  ask: { path: '/v1/realtime', sockets: true, concurrent_calls: SESSIONS_OPEN },
  lanes: SESSIONS_OPEN,
  newCaller: socketCallers(REALTIME_TURNS),
  startProvider: startRealtimeBilling,
  limitASecond: 50_000_000,
  env: { MAX_SOCKETS_PER_URL: String(SESSIONS_OPEN), HOLD_LEASE_SECONDS: '10' },
};

export const KINDS: Readonly<Record<string, Kind>> = { posts: POSTS, sockets: SOCKETS, realtime: REALTIME };
