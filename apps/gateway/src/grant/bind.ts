import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { Refusal } from '@presign/schema';
import type { Policy } from './policy.ts';

/** The origin and the client of a request. */
export type Asking = Pick<IncomingMessage, 'headers'> & {
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** The address of a request's client. Undefined: a proxy has not stated one that can be read. */
export type ClientAddress = (request: Asking) => string | undefined;

/** Addresses, and ranges of them. */
export type AddressRanges = { readonly has: (address: string) => boolean };

/** IPv6's form of IPv4 addresses. */
const MAPPED = new BlockList();
MAPPED.addSubnet('::ffff:0:0', 96, 'ipv6');

/**
 * Reads addresses and CIDR ranges. An IPv4 client is compared only with IPv4 ranges, even if its address is written in IPv6. `::/0` means
 * every IPv6 address. IPv6 has its own list, because one `BlockList` treats every IPv4 address as a member of ::ffff:0:0/96.
 * @throws when one of them is malformed
 */
export function readRanges(ranges: readonly string[]): AddressRanges {
  const [ipv4, ipv6] = [new BlockList(), new BlockList()];
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    const list = family === 'ipv4' ? ipv4 : ipv6;
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return {
    has: (text) => {
      // A zone (RFC 4007 §11) names a link of this machine.
      const address = text.replace(/%.*/, '');
      const version = isIP(address);
      if (version === 4) return ipv4.check(address, 'ipv4');
      if (version !== 6) return false;
      return (MAPPED.check(address, 'ipv6') ? ipv4 : ipv6).check(address, 'ipv6');
    },
  };
}

/** Real chains are shorter. A header can hold thousands of addresses, and to read all of them would take many milliseconds. */
const MOST_PROXIES = 32;

/**
 * Reads the address of a client. Only the part of `X-Forwarded-For` that trusted proxies have written counts. It is read from its end to
 * the first address that is not a trusted proxy. The client may have sent the beginning. Behind more than 32 proxies the address is
 * unknown.
 */
export function clientAddressReader(trustedProxies: readonly string[]): ClientAddress {
  const trusted = readRanges(trustedProxies);
  return ({ headers, socket }) => {
    const named = String(headers['x-forwarded-for'] ?? '').split(',');
    let address = socket.remoteAddress;
    if (headers['x-forwarded-for'] === undefined) return address;
    for (let proxies = 0; address !== undefined && named.length > 0 && trusted.has(address); proxies++)
      address = proxies < MOST_PROXIES ? addressIn(named.pop() ?? '') : undefined;
    return address;
  };
}

/** `192.0.2.7`, `192.0.2.7:443`, `2001:db8::7` or `[2001:db8::7]:443`. Undefined: none of these. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const address = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(address) === 0 ? undefined : address;
}

const RANGES = new WeakMap<readonly string[], AddressRanges>();

function rangesOf(list: readonly string[]): AddressRanges {
  const known = RANGES.get(list);
  if (known) return known;
  const ranges = readRanges(list);
  RANGES.set(list, ranges);
  return ranges;
}

/**
 * Refuses a call from a place to which its URL is not bound. The refusal does not name the allowed places, because a
 * thief of the URL could then send that origin.
 */
export function bindRefusal(
  { conditions }: Pick<Policy, 'conditions'>,
  request: Asking,
  clientAddress: ClientAddress,
): Refusal | undefined {
  const { origins, ip_ranges: ranges } = conditions?.bind ?? {};
  if (origins && !origins.includes(request.headers.origin ?? '')) return { code: 'origin_not_allowed' };
  if (ranges && !rangesOf(ranges).has(clientAddress(request) ?? '')) return { code: 'address_not_allowed' };
  return undefined;
}

/** The one origin whose pages may read the answers of a URL, if it is bound to origins and this is one of them. */
export const boundOrigin = (
  { conditions }: Pick<Policy, 'conditions'>,
  { origin }: IncomingHttpHeaders,
): string | undefined =>
  origin !== undefined && conditions?.bind?.origins?.includes(origin) ? origin : undefined;
