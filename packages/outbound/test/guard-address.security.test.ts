import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Dispatcher, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blockedFor, guardedDispatcher, guardedLookup, isReserved } from '../src/guard-address.ts';

let port: number;
let reached = 0;
const server = createServer((_request, response) => {
  reached++;
  response.end('inside');
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.close();
});

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.254',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.0.1',
  '169.254.169.254',
  '168.63.129.16',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '192.168.255.255',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::7f00:1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:10.0.0.1',
  '::ffff:169.254.169.254',
  '::ffff:0:127.0.0.1',
  '64:ff9b::127.0.0.1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::10.0.0.1',
  '100::1',
  '100:0:0:1::1',
  '2001::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:10::1',
  '2001:20::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:a9fe:a9fe::1',
  '3fff::1',
  '5f00::1',
  '8000::1',
  'fc00::1',
  'fd00:ec2::254',
  'fdff:ffff::1',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fec0::1',
  'ff02::1',
  'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  'localhost',
  '0177.0.0.1',
  '',
])('%s is not a public address', (address) => {
  expect(isReserved(address)).toBe(true);
});

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2001:4860:4860::8888',
  '2606:4700:4700::1111',
  '2a00:1450:4001::200e',
  '2620:fe::fe',
])('%s is a public address', (address) => {
  expect(isReserved(address)).toBe(false);
});

const spellings = [
  '127.0.0.1',
  'localhost',
  'LOCALHOST',
  'localhost.',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '0.0.0.0',
  '0',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0x7f.0x0.0x0.0x1',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '127。0。0。1',
  '①②⑦.0.0.1',
];

test.each(spellings)('http://%s gets no request', async (host) => {
  const dispatcher = guardedDispatcher(false);
  const before = reached;
  await expect(request(`http://${host}:${port}/`, { dispatcher })).rejects.toThrow();
  expect(reached).toBe(before);
  await dispatcher.destroy();
});

test('the addresses above are reachable if they are allowed', async () => {
  const dispatcher = guardedDispatcher(true);
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1']) {
    const answer = await request(`http://${host}:${port}/`, { dispatcher });
    expect(await answer.body.text()).toBe('inside');
  }
  await dispatcher.destroy();
});

test('an allowed host and port allow exactly that host and port', async () => {
  const dispatcher = guardedDispatcher(new Set([`127.0.0.1:${port}`]));
  const answer = await request(`http://127.0.0.1:${port}/`, { dispatcher });
  expect(await answer.body.text()).toBe('inside');
  const before = reached;
  for (const host of ['localhost', '[::1]', '127.0.0.2', '0.0.0.0']) {
    await expect(request(`http://${host}:${port}/`, { dispatcher })).rejects.toThrow();
  }
  const other = guardedDispatcher(new Set([`127.0.0.1:${port + 1}`, `localhost:${port}`]));
  await expect(request(`http://127.0.0.1:${port}/`, { dispatcher: other })).rejects.toThrow('reserved');
  expect(reached).toBe(before);
  await Promise.all([dispatcher.destroy(), other.destroy()]);
});

test('an allowed host without a port allows the default port of its scheme', async () => {
  const dispatcher = guardedDispatcher(new Set(['127.0.0.1:80']));
  // Whether or not a server listens on port 80, the guard has let the call pass.
  const error = await request('http://127.0.0.1/', { dispatcher }).catch((thrown: Error) => thrown);
  expect(error).not.toMatchObject({ code: 'BLOCKED_ADDRESS' });
  await dispatcher.destroy();
});

describe('through a proxy', () => {
  const targets: string[] = [];
  const proxy = createServer();
  let dispatcher: Dispatcher;
  beforeAll(async () => {
    proxy.on('connect', (seen, socket) => {
      targets.push(seen.url ?? '');
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    dispatcher = guardedDispatcher(false, { url });
  });
  afterAll(async () => {
    await dispatcher.destroy();
    proxy.close();
  });

  test.each([
    ...spellings,
    '10.0.0.7',
    '169.254.169.254',
    '[fd00:ec2::254]',
    'metadata.google.internal',
    'intranet',
    'a.local.',
  ])('https://%s gets no request', async (host) => {
    await expect(request(`https://${host}/`, { dispatcher })).rejects.toThrow();
    expect(targets).toEqual([]);
  });

  test('http does not use it, and is guarded too', async () => {
    const before = reached;
    await expect(request(`http://127.0.0.1:${port}/`, { dispatcher })).rejects.toThrow('reserved');
    expect({ reached, targets }).toEqual({ reached: before, targets: [] });
  });

  test('a name that does not resolve here is passed to it', async () => {
    await expect(request('https://nowhere.invalid/', { dispatcher })).rejects.toThrow('502');
    expect(targets).toEqual(['nowhere.invalid:443']);
  });
});

const resolvingTo =
  (...addresses: string[]) =>
  (_name: string, _options: object, callback: (error: null, found: LookupAddress[]) => void) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

const lookUp = (addresses: string[], all: boolean) =>
  new Promise<{ error: Error | null; found: unknown }>((resolve) => {
    guardedLookup(isReserved, resolvingTo(...addresses))('name.example', { all }, (error, found) =>
      resolve({ error, found }),
    );
  });

test.each([
  [['10.0.0.1']],
  [['1.1.1.1', '10.0.0.1']],
  [['2606:4700:4700::1111', '::1']],
  [['::ffff:169.254.169.254']],
  [[]],
])(
  'a name that resolves to %s is refused, even if it also resolves to other addresses',
  async (addresses) => {
    for (const all of [true, false]) {
      const { error } = await lookUp(addresses, all);
      expect(error).toMatchObject({ code: 'BLOCKED_ADDRESS' });
    }
  },
);

test('a name that resolves to public addresses is connected to exactly those', async () => {
  expect(await lookUp(['1.1.1.1', '2606:4700:4700::1111'], true)).toEqual({
    error: null,
    found: [
      { address: '1.1.1.1', family: 4 },
      { address: '2606:4700:4700::1111', family: 6 },
    ],
  });
  expect((await lookUp(['1.1.1.1', '9.9.9.9'], false)).found).toBe('1.1.1.1');
});

test('a name that resolves to a private address at the second lookup is refused then', async () => {
  const answers = [['1.1.1.1'], ['127.0.0.1']];
  const rebinding = guardedLookup(isReserved, (name, options, callback) =>
    resolvingTo(...(answers.shift() ?? []))(name, options, callback),
  );
  const next = () =>
    new Promise((resolve) => rebinding('name.example', { all: true }, (error) => resolve(error?.name)));
  expect(await next()).toBeUndefined();
  expect(await next()).toBe('BlockedAddressError');
});

test('only the hosts that an operator allows may be private', () => {
  expect(blockedFor('host.example:80', false)('10.0.0.1')).toBe(true);
  expect(blockedFor('host.example:80', new Set(['other.example:80']))('10.0.0.1')).toBe(true);
  expect(blockedFor('host.example:80', new Set(['host.example:80']))('10.0.0.1')).toBe(false);
  expect(blockedFor('host.example:80', true)('10.0.0.1')).toBe(false);
});
