import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { blockedFor, guardedDispatcher, guardedLookup, isReserved } from '../src/guard-address.ts';
import { isMetadata } from '../src/metadata-address.ts';

/** Addresses of metadata services by vendor. The source of each is in the file under test. No test connects to one. */
const V4 = [
  ['AWS, Google Cloud, Azure, OpenStack', '169.254.169.254'],
  ['GKE', '169.254.169.252'],
  ['ECS', '169.254.170.2'],
  ['EKS', '169.254.170.23'],
  ['Tencent Cloud', '169.254.0.23'],
  ['Tencent Cloud', '169.254.10.10'],
  ['Tencent Cloud', '100.88.222.5'],
  ['Scaleway', '169.254.42.42'],
  ['Rancher', '169.254.169.250'],
  ['Azure', '168.63.129.16'],
  ['Alibaba Cloud', '100.100.100.200'],
  ['Volcano Engine', '100.96.0.96'],
  ['UCloud', '100.80.80.80'],
  ['Oracle Cloud Classic', '192.0.0.192'],
  ['Equinix Metal', '192.80.8.124'],
] as const;
const V6 = [
  ['AWS', 'fd00:ec2::254'],
  ['EKS', 'fd00:ec2::23'],
  ['Google Cloud', 'fd20:ce::254'],
  ['Oracle', 'fd00:c1::a9fe:a9fe'],
  ['Linode', 'fd00:a9fe:a9fe::1'],
  ['Alibaba Cloud', 'fd00:100::100:200'],
  ['Scaleway', 'fd00:42::42'],
  ['OpenStack', 'fe80::a9fe:a9fe'],
] as const;

const bytes = (v4: string) => v4.split('.').map(Number);
const hex = (v4: string) =>
  bytes(v4)
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
const pairs = (v4: string) => [hex(v4).slice(0, 4), hex(v4).slice(4)] as const;
const inverted = (v4: string) =>
  bytes(v4)
    .map((byte) => 255 - byte)
    .join('.');
/** RFC 6052 §2.2 for prefixes that leave the address in the middle. The byte at 8 is 0. */
const inMiddle = (prefix: string, bits: number, v4: string) => {
  const of = (bits / 4) as number;
  const digits = (prefix.padEnd(of, '0') + hex(v4)).padEnd(30, '0');
  const whole = `${digits.slice(0, 16)}00${digits.slice(16)}`.slice(0, 32);
  return (whole.match(/.{4}/g) ?? []).join(':');
};

/** Every notation in which an IPv4 address can be written as an IPv6 address that leads to it. */
const formsOf = (v4: string): string[] => {
  const [high, low] = pairs(v4);
  return [
    `::ffff:${v4}`,
    `::ffff:${high}:${low}`,
    `0:0:0:0:0:FFFF:${v4}`,
    `::${high}:${low}`,
    `::ffff:0:${v4}`,
    `64:ff9b::${v4}`,
    `64:ff9b:1::${v4}`,
    `64:ff9b:1:abcd::${v4}`,
    inMiddle('0064ff9b0001', 48, v4),
    inMiddle('0064ff9b000100', 56, v4),
    inMiddle('0064ff9b00010002', 64, v4),
    // Prefixes that an operator chose.
    `2a00:1450:64::${v4}`,
    ...[32, 40, 48, 56, 64].map((bits) => inMiddle('2a001450', bits, v4)),
    `2002:${high}:${low}::1`,
    `fd12:3456::5efe:${v4}`,
    `2a00:1450::200:5efe:${v4}`,
    `2001:0:${high}:${low}::1`,
    `2001:0:0808:0808::${inverted(v4)}`,
  ];
};

const ALL = [
  ...V4.flatMap(([vendor, v4]) => [v4, ...formsOf(v4)].map((form) => [vendor, form] as const)),
  ...V6.flatMap(([vendor, v6]) =>
    [v6, v6.toUpperCase(), `${v6}%eth0`, `${v6}%1`].map((form) => [vendor, form] as const),
  ),
  ...['169.254.0.0', '169.254.255.255', 'fe80::1%eth0', 'febf:ffff::1', '192.0.0.1', 'fd00:ec2::253'].map(
    (form) => ['a whole network', form] as const,
  ),
  // The resolver's answers are addresses. Anything else is not let through.
  ...['', 'name', '0xa9fea9fe', '0251.0376.0251.0376'].map((form) => ['no address', form] as const),
];

test.each(ALL)('the metadata service of %s is blocked at %s, even if allowed', (_vendor, address) => {
  for (const allowed of [false, true, new Set(['host.example:80'])])
    expect(blockedFor('host.example:80', allowed)(address)).toBe(true);
  expect(isReserved(address)).toBe(true);
});

test.each([
  ...['127.0.0.1', '10.0.0.1', '192.168.0.1', '172.16.0.1', '100.64.0.1', '100.100.100.201', '8.8.8.8'],
  ...['168.63.129.17', '192.80.8.125', '169.253.255.255', '169.255.0.0', '192.0.1.0'],
  ...['::', '::1', '::ffff:10.0.0.1', '64:ff9b::8.8.8.8', '64:ff9b:1::10.0.0.1', 'fd00:42::43', 'fd00::1'],
  ...['fd12:3456::1', 'fc00::1', 'fec0::1', '2001:4860:4860::8888', '2a00:1450:4001::200e', '2002:a00:1::1'],
])('%s is not a metadata service', (address) => {
  expect(isMetadata(address)).toBe(false);
});

test.each([
  ...[
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '025177524776',
    '0251.0376.0251.0376',
    '0xa9.0376.43518',
  ],
  ...[
    '169.254.169.254.',
    '169。254。169。254',
    '①⑥⑨.254.169.254',
    '%31%36%39.254.169.254',
    '100.100.100.200',
  ],
  ...['[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[fd00:c1::a9fe:a9fe]', '[FE80::A9FE:A9FE]'],
])('a URL http://%s names a blocked address', (host) => {
  const { hostname } = new URL(`http://${host}`);
  expect(blockedFor('host.example:80', true)(hostname.replace(/^\[|\]$/g, ''))).toBe(true);
});

const lookUp = (...addresses: string[]) =>
  new Promise<unknown>((resolve) =>
    guardedLookup(isMetadata, (_name, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
    )('name.example', { all: true }, resolve),
  );

test('a name that resolves to a metadata service is refused even where private addresses are allowed', async () => {
  for (const [, address] of [...V4, ...V6]) {
    expect(await lookUp(address)).toMatchObject({ code: 'BLOCKED_ADDRESS' });
    expect(await lookUp('10.0.0.1', address)).toMatchObject({ code: 'BLOCKED_ADDRESS' });
  }
  expect(await lookUp('10.0.0.1', 'fd12:3456::1')).toBeNull();
});

describe('the name of a metadata service', () => {
  const names = [
    ...['metadata', 'metadata.google.internal', 'METADATA.GOOGLE.INTERNAL.', 'metadata.goog'],
    ...['instance-data.ec2.internal', 'api.metadata.cloud.ibm.com', 'metadata.tencentyun.com'],
  ];

  test.each(names)('%s is not looked up, and not sent to a proxy', async (name) => {
    const targets: string[] = [];
    const proxy = createServer().on('connect', (seen, socket) => {
      targets.push(seen.url ?? '');
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    for (const allowed of [true, new Set([`${name}:443`])]) {
      for (const dispatcher of [guardedDispatcher(allowed), guardedDispatcher(allowed, { url })]) {
        const asked = request(`https://${name}/`, { dispatcher });
        await expect(asked).rejects.toMatchObject({ code: 'BLOCKED_ADDRESS' });
        await dispatcher.destroy();
      }
    }
    expect(targets).toEqual([]);
    proxy.close();
  });
});
