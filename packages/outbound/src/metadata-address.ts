import { BlockList, isIP } from 'node:net';

/**
 * Whether an address is a cloud's metadata service or host agent, in any form of it. True for a text that is not an address.
 * These services return a machine's credentials or settings.
 */
export function isMetadata(address: string): boolean {
  // A zone (RFC 4007 §11) chooses a link, and does not change the address.
  const [bare = ''] = address.split('%');
  if (isIP(bare) === 4) return NETWORKS.check(bare, 'ipv4');
  if (isIP(bare) !== 6) return true;
  if (NETWORKS.check(bare, 'ipv6')) return true;
  const bytes = bytesOf(bare);
  return (
    translatedBy(bytes).some((v4) => NETWORKS.check(v4, 'ipv4')) ||
    embeddedIn(bytes).some((v4) => ADDRESSES.has(v4))
  );
}

/** Whether a name is that of a metadata service. A proxy could resolve it where this machine cannot. */
export const isMetadataName = (host: string): boolean =>
  METADATA_NAMES.has(host.toLowerCase().replace(/\.$/, ''));

const METADATA_NAMES: ReadonlySet<string> = new Set([
  // Google Cloud (https://cloud.google.com/compute/docs/metadata/querying-metadata).
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  // AWS: names in the DNS of a VPC.
  'instance-data',
  'instance-data.ec2.internal',
  // IBM (https://cloud.ibm.com/apidocs/vpc-metadata), Tencent, Exoscale, Kingsoft (https://endocs.ksyun.com/documents/7200).
  'api.metadata.cloud.ibm.com',
  'metadata.tencentyun.com',
  'metadata.exoscale.com',
  'global.cloudinit.sdns.ksyun.com',
  // Equinix Metal, on public addresses.
  'metadata.platformequinix.com',
  'metadata.packet.net',
  'rancher-metadata',
]);

/** Addresses of metadata services, with their vendors. Vendors' pages and the data sources of cloud-init 25 (2026-11). */
const ADDRESSES: ReadonlySet<string> = new Set([
  // AWS, Google Cloud, Azure, Oracle, IBM, DigitalOcean, Hetzner, Linode, Vultr, Huawei, Yandex, Exoscale, OpenStack and others.
  '169.254.169.254',
  // GKE: where its nodes' metadata server listens (https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity).
  '169.254.169.252',
  // AWS: tasks of ECS, and pods of EKS (https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html).
  '169.254.170.2',
  '169.254.170.23',
  // Tencent Cloud (metadata.tencentyun.com), Scaleway, Rancher.
  '169.254.0.23',
  '169.254.10.10',
  '169.254.42.42',
  '169.254.169.250',
  // Azure: WireServer (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
  '168.63.129.16',
  // Alibaba Cloud (https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata).
  '100.100.100.200',
  // Volcano Engine and BytePlus (https://docs.byteplus.com/en/docs/ecs/Viewing-instance-metadata).
  '100.96.0.96',
  // UCloud (https://docs.ucloud.cn/uhost/guide/metadata/metadata-server).
  '100.80.80.80',
  // Tencent Cloud, before metadata.tencentyun.com had a link-local address.
  '100.88.222.5',
  // Oracle Cloud Classic.
  '192.0.0.192',
  // Equinix Metal (metadata.packet.net), a public address.
  '192.80.8.124',
]);

const ADDRESSES_V6 = [
  // Google Cloud (https://cloud.google.com/compute/docs/metadata/querying-metadata).
  'fd20:ce::254',
  // Oracle (https://docs.oracle.com/iaas/Content/Compute/Tasks/gettingmetadata.htm).
  'fd00:c1::a9fe:a9fe',
  // Linode (https://techdocs.akamai.com/cloud-computing/docs/metadata-service-api).
  'fd00:a9fe:a9fe::1',
  // Alibaba Cloud, and Scaleway: cloud-init's data sources.
  'fd00:100::100:200',
  'fd00:42::42',
] as const;

/** The addresses above, and whole networks in which no upstream lives. */
const NETWORKS = new BlockList();
for (const address of ADDRESSES) NETWORKS.addAddress(address, 'ipv4');
for (const address of ADDRESSES_V6) NETWORKS.addAddress(address, 'ipv6');
// Link-local (RFC 3927, RFC 4291 §2.5.6): OpenStack and Linode have fe80::a9fe:a9fe, GKE and others serve here as well.
NETWORKS.addSubnet('169.254.0.0', 16, 'ipv4');
NETWORKS.addSubnet('fe80::', 10, 'ipv6');
// Protocol assignments (RFC 6890): no service of a user.
NETWORKS.addSubnet('192.0.0.0', 24, 'ipv4');
// AWS's own services: instances ::254, pods of EKS ::23, DNS, time.
NETWORKS.addSubnet('fd00:ec2::', 32, 'ipv6');

/** The 16 bytes of an IPv6 address. */
function bytesOf(address: string): readonly number[] {
  // URL writes an address in hexadecimal, also where its end is dotted.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
  const [left, right] = [words(head), words(tail ?? '')];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => 0);
  return [...left, ...zeros, ...right].flatMap((word) => [word >> 8, word & 0xff]);
}

type Bytes = readonly number[];

const dotted = (bytes: Bytes): string => bytes.join('.');

/** Whether an address begins with these bytes. `undefined` stands for any byte. */
const begins = (bytes: Bytes, start: readonly (number | undefined)[]): boolean =>
  start.every((byte, i) => byte === undefined || byte === bytes[i]);

const zero = (length: number): Bytes => Array.from({ length }, () => 0);
const ANY_8 = Array.from({ length: 8 }, () => undefined);

/** The IPv4 addresses to which a host or a router translates an address. */
function translatedBy(bytes: Bytes): string[] {
  const last = bytes.slice(12);
  const found: Bytes[] = [];
  // IPv4-mapped, IPv4-compatible (RFC 4291 §2.5.5) and translated (RFC 2765 §2.1).
  const ends = [zero(12), [...zero(10), 0xff, 0xff], [...zero(8), 0xff, 0xff, 0, 0]];
  if (ends.some((end) => begins(bytes, end))) found.push(last);
  // NAT64: the well-known prefix (RFC 6052 §2.1), and prefixes for local use (RFC 8215), of any length.
  if (begins(bytes, [0, 0x64, 0xff, 0x9b, ...zero(8)])) found.push(last);
  if (begins(bytes, [0, 0x64, 0xff, 0x9b, 0, 1])) found.push(...nat64(bytes, [48, 56, 64, 96]));
  // 6to4 (RFC 3056), ISATAP (RFC 5214 §6.1), and Teredo's server and client (RFC 4380 §4).
  if (begins(bytes, [0x20, 0x02])) found.push(bytes.slice(2, 6));
  if ([0, 2].some((bit) => begins(bytes, [...ANY_8, bit, 0, 0x5e, 0xfe]))) found.push(last);
  if (begins(bytes, [0x20, 0x01, 0, 0]))
    found.push(
      bytes.slice(4, 8),
      last.map((byte) => byte ^ 0xff),
    );
  return found.map(dotted);
}

/** The IPv4 addresses that an address has if its network is a prefix that an operator chose for NAT64 (RFC 6052 §2.2). */
const embeddedIn = (bytes: Bytes): string[] => nat64(bytes, [32, 40, 48, 56, 64, 96]).map(dotted);

/** RFC 6052 §2.2: the IPv4 address follows the prefix. The byte at 8 is not part of it. */
const nat64 = (bytes: Bytes, lengths: readonly number[]): Bytes[] =>
  lengths.map((bits) =>
    bits === 96 ? bytes.slice(12) : bytes.filter((_, i) => i !== 8).slice(bits / 8, bits / 8 + 4),
  );
