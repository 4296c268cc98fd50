import type { Refusal } from '@presign/schema';
import { Bag } from '../bag.ts';

/** How many sockets may be open at one gateway, and how long their messages may be. */
export type SocketBounds = {
  readonly perUrl: number;
  readonly perAccount: number;
  readonly perGateway: number;
  /** In bytes. A longer message closes its socket with 1009. */
  readonly holderMessageBytes: number;
  readonly upstreamMessageBytes: number;
  /** The interval of pings to both peers. A vanished peer is detected after two to three intervals. */
  readonly beatMs: number;
};

export const SOCKET_BOUNDS: SocketBounds = {
  perUrl: 20,
  perAccount: 1_000,
  perGateway: 5_000,
  holderMessageBytes: 1024 * 1024,
  upstreamMessageBytes: 16 * 1024 * 1024,
  beatMs: 18_000,
};

/** Sockets that are open only to be refused. Each closes after three seconds. They do not count toward the other bounds. */
const REFUSED_MOST = 256;
const REFUSED_PER_URL = 4;

/** The part of an open socket that the gateway's stop and its heartbeat need. */
export type OpenSocket = {
  /** Pings both peers, and ends the socket if one has not answered since the last ping. */
  readonly beat: () => void;
  /** Ends it as soon as no turn runs, because the gateway stops. */
  readonly stop: () => void;
  /** Ends it at once. */
  readonly cut: (why: 'closing') => void;
};

/** The sockets of a gateway. */
export type OpenSockets = {
  readonly bounds: SocketBounds;
  /** Counts a socket. It counts until `leave`. */
  readonly enter: (of: Owner) => { readonly leave: () => void } | { readonly refusal: Refusal };
  /** How many sockets of a URL are open here. */
  readonly openOf: (grantId: string) => number;
  /** Counts a socket that is opened to refuse it. Undefined: too many of them are open. */
  readonly enterRefused: (grantId: string) => (() => void) | undefined;
  /** @returns removes it */
  readonly add: (socket: OpenSocket) => () => void;
  /** How many are open: all, and those of the URL and of the account that have the most. */
  readonly counts: () => Readonly<Record<'gateway' | 'account' | 'url', number>>;
  readonly stopAll: () => void;
  readonly cutAll: () => void;
  readonly close: () => void;
};

type Owner = { readonly grantId: string; readonly accountId: string };

export function createOpenSockets(bounds: SocketBounds): OpenSockets {
  const sockets = new Bag<OpenSocket>();
  const urls = new Map<string, number>();
  const accounts = new Map<string, number>();
  const refused = new Set<object>();
  const refusedUrls = new Map<string, number>();
  let open = 0;
  const change = (counts: Map<string, number>, key: string, by: number) => {
    const next = (counts.get(key) ?? 0) + by;
    if (next === 0) counts.delete(key);
    else counts.set(key, next);
  };
  const changeAll = ({ grantId, accountId }: Owner, by: number) => {
    open += by;
    change(urls, grantId, by);
    change(accounts, accountId, by);
  };
  const beating = setInterval(() => {
    for (const each of sockets) each.beat();
  }, bounds.beatMs);
  beating.unref();
  return {
    bounds,
    enter: (owner) => {
      const refusal =
        over('This URL has', urls.get(owner.grantId), bounds.perUrl) ??
        over('The account of this URL has', accounts.get(owner.accountId), bounds.perAccount) ??
        (open >= bounds.perGateway ? FULL : undefined);
      if (refusal) return { refusal };
      changeAll(owner, 1);
      let hasLeft = false;
      const leave = () => {
        if (hasLeft) return;
        hasLeft = true;
        changeAll(owner, -1);
      };
      return { leave };
    },
    openOf: (grantId) => urls.get(grantId) ?? 0,
    enterRefused: (grantId) => {
      if (refused.size >= REFUSED_MOST || (refusedUrls.get(grantId) ?? 0) >= REFUSED_PER_URL)
        return undefined;
      const entry = {};
      refused.add(entry);
      change(refusedUrls, grantId, 1);
      return () => {
        if (refused.delete(entry)) change(refusedUrls, grantId, -1);
      };
    },
    add: (socket) => sockets.add(socket),
    counts: () => ({ gateway: open, account: most(accounts), url: most(urls) }),
    stopAll: () => {
      for (const each of sockets) each.stop();
    },
    cutAll: () => {
      for (const each of sockets) each.cut('closing');
    },
    close: () => clearInterval(beating),
  };
}

/** The largest count. */
const most = (counts: ReadonlyMap<string, number>): number => {
  let largest = 0;
  for (const count of counts.values()) largest = Math.max(largest, count);
  return largest;
};

const over = (whose: string, count = 0, limit: number): Refusal | undefined =>
  count < limit
    ? undefined
    : {
        code: 'rate_limited',
        message: `${whose} ${limit} sockets open at this gateway. Close one first.`,
        details: { limit },
        retryAfterSeconds: 5,
      };

const FULL: Refusal = {
  code: 'overloaded',
  message: 'This gateway has no room for another socket. Try again.',
  retryAfterSeconds: 5,
};
