import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import { isMetadata, isMetadataName } from './metadata-address.ts';

/** The address of an upstream is not public. Nothing was sent to it. */
export class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS';
  constructor() {
    super('The address is private or reserved.');
    this.name = 'BlockedAddressError';
  }
}

/** Addresses that may be reached in addition to public ones: all, or these `host:port`. */
export type PrivateUpstreams = boolean | ReadonlySet<string>;

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * The dispatcher for all outbound requests of a service: keep-alive connections to public addresses. It checks the address that it connects
 * to, so a name cannot resolve to another address after the check. It never reaches the metadata services of clouds, even if private
 * addresses are allowed, because they return the machine's credentials.
 * @param proxy for https, if configured
 */
export function guardedDispatcher(allowPrivate: PrivateUpstreams, proxy?: OutboundProxy): Dispatcher {
  const connect = guardedConnect(allowPrivate);
  // One request at a time on a connection: a slow stream must not delay another call.
  if (proxy === undefined) return new Agent({ pipelining: 1, connect });
  const factory = (origin: string | URL, { connect: ownConnect, ...options }: Pool.Options) => {
    const isTunnel = typeof ownConnect === 'function' && ownConnect !== connect;
    const guarded = isTunnel ? guardedTunnel(allowPrivate, ownConnect) : connect;
    return new Pool(origin, { ...options, connect: guarded });
  };
  const { url, noProxy = '' } = proxy;
  // An empty address of the proxy for http: without one, the library reads the environment.
  const through = { httpProxy: '', httpsProxy: url, noProxy };
  return new EnvHttpProxyAgent({ pipelining: 1, connect, factory, ...through }).compose(listHeaders);
}

/** A proxy for https, which opens a tunnel for each connection (RFC 9110 §9.3.6). Plain http does not use it. */
export type OutboundProxy = {
  readonly url: string;
  /** Hosts that are reached directly, separated by commas: names with their subdomains, with or without a port. */
  readonly noProxy?: string | undefined;
};

/** undici's proxy agent keeps only the last of several headers of a name when they come as one flat list. */
const listHeaders: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const { headers: flat } = options;
  if (!Array.isArray(flat)) return dispatch(options, handler);
  const lists = new Map<string, string[]>();
  for (let i = 0; i < flat.length; i += 2) {
    const list = lists.get(String(flat[i])) ?? [];
    list.push(String(flat[i + 1]));
    lists.set(String(flat[i]), list);
  }
  const headers = Object.fromEntries(lists);
  return dispatch({ ...options, headers }, handler);
};

/**
 * Opens a tunnel, unless the host is a blocked address or a name that resolves to one here. The proxy resolves the name again. If this
 * machine cannot resolve it, the proxy alone decides, except for names that are never public.
 */
function guardedTunnel(
  allowPrivate: PrivateUpstreams,
  open: buildConnector.connector,
): buildConnector.connector {
  return (options, callback) => {
    const host = hostOf(options);
    const isBlocked = blockedFor(whereOf(options), allowPrivate);
    const refuse = () => callback(new BlockedAddressError(), null);
    if (isMetadataName(host)) return refuse();
    // A literal address is its own lookup.
    lookup(host, { all: true }, (_unknown, addresses = []) => {
      const isInside = addresses.length === 0 && allowPrivate !== true && PRIVATE_NAME.test(host);
      if (isInside || addresses.some(({ address }) => isBlocked(address))) refuse();
      else open(options, callback);
    });
  };
}

/**
 * Names without a dot, and domains that are never public: RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), and
 * ICANN's reserved `internal`, which has a cloud's metadata service.
 */
const PRIVATE_NAME = /^(?:[^.]+|.*\.(?:localhost|local|internal|home\.arpa))\.?$/i;

type Target = Pick<buildConnector.Options, 'hostname' | 'port' | 'protocol'>;

const whereOf = ({ hostname, port, protocol }: Target) =>
  `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;

/** A literal IPv6 address has no brackets. URL has normalised its spelling. */
const hostOf = ({ hostname }: Target) => hostname.replace(/^\[|\]$/g, '');

function guardedConnect(allowPrivate: PrivateUpstreams): buildConnector.connector {
  const toAnywhere = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guardedLookup(isMetadata) });
  const toPublic = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guardedLookup(isReserved) });
  return (options, callback) => {
    const isBlocked = blockedFor(whereOf(options), allowPrivate);
    // A literal address is never looked up.
    const host = hostOf(options);
    if (isMetadataName(host) || (isIP(host) !== 0 && isBlocked(host)))
      return callback(new BlockedAddressError(), null);
    return (isBlocked === isReserved ? toPublic : toAnywhere)(options, callback);
  };
}

type IsBlocked = (address: string) => boolean;

/**
 * The addresses to which a host must not resolve.
 * @param where `host:port`
 */
export const blockedFor = (where: string, allowPrivate: PrivateUpstreams): IsBlocked =>
  allowPrivate === true || (allowPrivate !== false && allowPrivate.has(where)) ? isMetadata : isReserved;

type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Resolves a name, and refuses it if any of its addresses is blocked. */
export function guardedLookup(isBlocked: IsBlocked, resolve: Resolve = lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error) return callback(error, '');
      if (!first || addresses.some(({ address }) => isBlocked(address)))
        return callback(new BlockedAddressError(), '');
      if (options.all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

/** Whether an IP address is outside the public internet. True for a text that is not an address. */
export function isReserved(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return RESERVED_V4.check(address, 'ipv4') || isMetadata(address);
    case 6:
      // An address with a zone (RFC 4007 §11) is valid on one link only.
      return address.includes('%') || RESERVED_V6.check(address, 'ipv6') || isMetadata(address);
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
] as const)
  RESERVED_V4.addSubnet(net, bits, 'ipv4');

/**
 * Everything outside 2000::/3, the only block of global addresses (RFC 4291 §2.4, IANA's registry): loopback, link-local,
 * private and multicast, and mapped and NAT64 addresses, which could lead back inside. Within 2000::/3: protocol assignments
 * and Teredo, documentation, 6to4.
 *
 * IPv6 has its own list, because one `BlockList` treats every IPv4 address as a member of ::ffff:0:0/96.
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
] as const)
  RESERVED_V6.addSubnet(net, bits, 'ipv6');
