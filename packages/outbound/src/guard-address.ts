import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns';
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
 * A service's one way out: keep-alive connections, to public addresses only. The address judged is the
 * address connected to, so a name that resolves differently the second time gains nothing.
 */
export function guardedDispatcher(allowPrivate: PrivateUpstreams): Dispatcher {
  const open = buildConnector({ timeout: CONNECT_TIMEOUT_MS });
  const guarded = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guardedLookup() });
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

type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Resolves a name, and refuses it if any of its addresses is not public. */
export function guardedLookup(resolve: Resolve = lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error) return callback(error, '');
      if (!first || addresses.some(({ address }) => isReserved(address)))
        return callback(new BlockedAddressError(), '');
      if (options.all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

/** Whether an IP address is outside the public internet; so is all that is none. */
export function isReserved(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return RESERVED_V4.check(address, 'ipv4');
    case 6:
      // An address with a zone (RFC 4007 §11) is meant for one link.
      return address.includes('%') || RESERVED_V6.check(address, 'ipv6');
    default:
      return true;
  }
}

/** The IANA IPv4 special-purpose registry (RFC 6890 and updates), multicast, and the future-use block. */
const RESERVED_V4 = new BlockList();
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
  RESERVED_V4.addSubnet(net, bits, 'ipv4');
}

/**
 * All but 2000::/3, the one block from which global addresses are given (RFC 4291 §2.4, IANA's registry); with
 * it go loopback, link-local, private and multicast, and mapped and NAT64 addresses, which could lead back
 * inside. Within 2000::/3: protocol assignments and Teredo, documentation, 6to4.
 *
 * A list of its own: one `BlockList` takes every IPv4 address for a member of ::ffff:0:0/96.
 */
const RESERVED_V6 = new BlockList();
for (const [net, bits] of [
  ['::', 3],
  ['4000::', 2],
  ['8000::', 1],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  RESERVED_V6.addSubnet(net, bits, 'ipv6');
}
