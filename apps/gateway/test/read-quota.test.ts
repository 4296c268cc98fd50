import { scanJson, textPlaces } from '@presign/schema';
import { expect, test } from 'vitest';
import {
  checkQuota,
  type QuotaOwner,
  type ReadQuota,
  readQuota,
  takeAgain,
  takeRefused,
  takeWork,
} from '../src/share/read-quota.ts';

const takeBody = (quota: ReadQuota, grant: QuotaOwner, body: Buffer) =>
  takeWork(quota, grant, body, (most) => scanJson(body, most)) !== undefined;

const MIB = 1024 * 1024;
const grant = { id: 'g', sessionId: 's' };
const other = { id: 'h', sessionId: 't' };

test('a URL may send 64 MiB at once and then 16 MiB a second, and others are not affected', () => {
  let now = 0;
  const quota = readQuota(() => now);
  const body = Buffer.alloc(16 * MIB);
  for (let i = 0; i < 5; i++) {
    expect(checkQuota(quota, grant)).toBeUndefined();
    takeBody(quota, grant, body);
  }
  expect(checkQuota(quota, grant)).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
  expect(checkQuota(quota, other)).toBeUndefined();
  now += 999;
  expect(checkQuota(quota, grant)).toBeDefined();
  now += 1;
  expect(checkQuota(quota, grant)).toBeUndefined();
});

test('the URLs of one session share four times the quota of one', () => {
  const quota = readQuota(() => 0);
  const body = Buffer.alloc(16 * MIB);
  for (let i = 0; i < 17; i++) takeBody(quota, { id: `g${i}`, sessionId: 's' }, body);
  expect(checkQuota(quota, { id: 'new', sessionId: 's' })).toMatchObject({ code: 'rate_limited' });
  expect(checkQuota(quota, { id: 'g1', sessionId: 't' })).toBeUndefined();
});

test.each<[string, Buffer, boolean]>([
  [
    'a chat',
    Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(60_000) }] })),
    true,
  ],
  [
    'a long conversation',
    Buffer.from(JSON.stringify(Array(100).fill({ role: 'user', content: 'x'.repeat(2_600) }))),
    true,
  ],
  ['80 KB beyond ASCII', Buffer.from(JSON.stringify({ input: 'é'.repeat(40_000) })), true],
  ['200 KB beyond ASCII', Buffer.from(JSON.stringify({ input: 'é'.repeat(100_000) })), false],
  ['200 KB of which little is', Buffer.from(JSON.stringify({ input: `é${'x'.repeat(200_000)}` })), true],
  ['more than 2 MiB', Buffer.alloc(2 * 1024 * 1024 + 1), false],
  ['about 1 MiB', Buffer.alloc(1_040_000), false],
  ['about 25,000 parts', Buffer.from(`[${'{},'.repeat(12_500)}{}]`), false],
  ['20,000 parts', Buffer.from(`[${'{},'.repeat(9_999)}{}]`), true],
  ['200 levels and more', Buffer.from('['.repeat(201)), false],
])('%s is read at once: %s', (_what, body, isLittle) => {
  expect(
    takeBody(
      readQuota(() => 0),
      grant,
      body,
    ),
  ).toBe(isLittle);
});

const TEXTS = textPlaces(['input[]'], { onlyAscii: false });
const takeTexts = (body: object) => {
  const bytes = Buffer.from(JSON.stringify(body));
  const scan = takeWork(
    readQuota(() => 0),
    grant,
    bytes,
    (most) => scanJson(bytes, most, undefined, { texts: TEXTS }),
  );
  return { bytes, scan };
};

test.each<[string, object, boolean]>([
  ['1.5 MB of long texts', { input: Array(1_500).fill('x'.repeat(1_000)) }, true],
  ['1.5 MB of long texts beyond ASCII', { input: Array(1_500).fill('é'.repeat(500)) }, true],
  ['1.5 MB of short texts', { input: Array(3_750).fill('x'.repeat(400)) }, false],
  ['1.5 MB of texts elsewhere', { other: Array(1_500).fill('x'.repeat(1_000)) }, false],
  ['80 KB beyond ASCII after a long text', { input: ['é'.repeat(400_000)], other: 'é'.repeat(40_000) }, true],
  ['200 KB beyond ASCII after a long text', { input: ['x'.repeat(99)], other: 'é'.repeat(100_000) }, false],
])('%s are read at once without those long texts: %s', (_what, body, isLittle) => {
  expect(takeTexts(body).scan !== undefined).toBe(isLittle);
});

test('a body is read again on the event loop, with its long texts, if that takes little too', () => {
  const quota = readQuota(() => 0);
  for (const [texts, isLittle] of [
    [900, true],
    [1_500, false],
  ] as const) {
    const { bytes, scan } = takeTexts({ input: Array(texts).fill('x'.repeat(1_000)) });
    expect(scan && takeAgain(quota, grant, bytes, scan)).toBe(isLittle);
  }
});

test('many chunks weigh more than their bytes', () => {
  const quota = readQuota(() => 0);
  const body = Buffer.from(`[${'{},'.repeat(900)}{}]`);
  let bodies = 0;
  for (; checkQuota(quota, grant) === undefined; bodies++) takeBody(quota, grant, body);
  expect(bodies).toBeLessThan(400);
});

test('an agent may send a conversation of 256 KB seventy times at once', () => {
  const quota = readQuota(() => 0);
  const body = Buffer.from(JSON.stringify(Array(650).fill({ role: 'user', content: 'x'.repeat(360) })));
  let bodies = 0;
  for (; checkQuota(quota, grant) === undefined; bodies++) takeBody(quota, grant, body);
  expect(bodies).toBeGreaterThan(70);
});

test('8,192 simultaneous refusals use up the quota, and refusals by the quota do not lengthen the wait', () => {
  let now = 0;
  const quota = readQuota(() => now);
  let refusals = 0;
  for (; checkQuota(quota, grant) === undefined; refusals++) takeRefused(quota, grant);
  expect(refusals).toBe(8_192 + 1);
  for (let i = 0; i < 1_000_000; i++) takeRefused(quota, grant);
  expect(checkQuota(quota, grant)).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
  now += 1;
  expect(checkQuota(quota, grant)).toBeUndefined();
});

test('a request that names no grant has no quota', () => {
  expect(
    checkQuota(
      readQuota(() => 0),
      undefined,
    ),
  ).toBeUndefined();
});
