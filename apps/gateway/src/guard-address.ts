import { lookup as resolve } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector, type Dispatcher } from 'undici';

/** An upstream whose address is not public; nothing was sent to it. */
export class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS';
  constructor() {
    super('The address is private or reserved.');
    this.name = 'BlockedAddressError';
  }
}

/** What may be reached beside public addresses: all, or these `host:port`. */
export type PrivateUpstreams = boolean | ReadonlySet<string>;

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * The gateway's one way out: keep-alive connections, to public addresses only. The address judged is the
 * address connected to, so a name that resolves differently the second time gains nothing.
 */
export function guardedDispatcher(allowPrivate: PrivateUpstreams): Dispatcher {
  const open = buildConnector({ timeout: CONNECT_TIMEOUT_MS });
  const guarded = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guardedLookup });
  return new Agent({
    // One request a connection at a time: a slow stream must not hold up another call.
    pipelining: 1,
    connect: (options, callback) => {
      const { hostname, port, protocol } = options;
      const where = `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
      if (allowPrivate === true || (allowPrivate !== false && allowPrivate.has(where)))
        return open(options, callback);
      // Addresses written out are never looked up; URL has brought odd spellings to one form.
      const literal = hostname.replace(/^\[|\]$/g, '');
      if (isIP(literal) !== 0 && isReserved(literal)) return callback(new BlockedAddressError(), null);
      return guarded(options, callback);
    },
  });
}

/** Resolves a name and refuses it if any of its addresses is not public. */
const guardedLookup: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? [];
    if (error || !first) return callback(error ?? new BlockedAddressError(), '');
    if (addresses.some(({ address }) => isReserved(address))) return callback(new BlockedAddressError(), '');
    if (options.all) return callback(null, addresses);
    return callback(null, first.address, first.family);
  });
};

/** Whether an IP address is outside the public internet. */
export const isReserved = (address: string): boolean =>
  RESERVED.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/**
 * The IANA special-purpose registries (RFC 6890 and updates), multicast, and the prefixes of IPv6 that carry
 * an IPv4 address (mapped, NAT64, 6to4, Teredo), which could lead back inside.
 */
const RESERVED = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  RESERVED.addSubnet(net, bits, 'ipv4');
}
for (const [net, bits] of [
  ['::', 96],
  ['::ffff:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
  ['5f00::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  RESERVED.addSubnet(net, bits, 'ipv6');
}
