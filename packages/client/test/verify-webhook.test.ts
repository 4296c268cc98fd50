import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { verifyWebhook, WebhookVerificationError } from '../src/index.ts';

const KEY = Buffer.alloc(32, 'key');
const SECRET = `whsec_${KEY.toString('base64')}`;
const BODY = '{"type":"grant.ended","timestamp":"2026-01-01T00:00:00Z","data":{"note":"ü 🙂"}}';
const now = () => Math.floor(Date.now() / 1000);

const sign = (body: string, at: number, key = KEY) =>
  `v1,${createHmac('sha256', key).update(`msg_1.${at}.${body}`).digest('base64')}`;
const headersOf = (signature: string, at = now()) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(at),
  'webhook-signature': signature,
});

test('a request of the issuer is accepted as text or bytes, with headers of any kind', async () => {
  const headers = headersOf(sign(BODY, now()));
  const event = await verifyWebhook(BODY, headers, SECRET);
  expect(event).toEqual(JSON.parse(BODY));
  expect(await verifyWebhook(Buffer.from(BODY), new Headers(headers), SECRET)).toEqual(event);
  const upper = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  expect(await verifyWebhook(BODY, upper, SECRET)).toEqual(event);
});

test('while a secret is rotated, a signature by either secret is enough', async () => {
  const other = sign(BODY, now(), Buffer.alloc(32, 'other'));
  await verifyWebhook(BODY, headersOf(`v1a,AAAA ${other} ${sign(BODY, now())}`), SECRET);
});

test.each([
  ['another body', { body: BODY.replace('ü', 'u') }],
  ['another secret', { secret: `whsec_${Buffer.alloc(32, 'x').toString('base64')}` }],
  ['no headers', { headers: {} }],
  ['an old request', { headers: headersOf(sign(BODY, now() - 400), now() - 400) }],
  ['a request of the future', { headers: headersOf(sign(BODY, now() + 400), now() + 400) }],
  ['another time than the signed one', { headers: headersOf(sign(BODY, now() - 10)) }],
  ['a time that is no number', { headers: { ...headersOf(sign(BODY, now())), 'webhook-timestamp': 'NaN' } }],
  ['a signature that is no base64', { headers: headersOf('v1,%%%') }],
  ['an empty signature', { headers: headersOf('v1,') }],
  ['a signature of another version', { headers: headersOf(sign(BODY, now()).replace('v1,', 'v2,')) }],
])(
  '%s is refused',
  async (_what, { body = BODY, secret = SECRET, headers = headersOf(sign(BODY, now())) }: Given) => {
    await expect(verifyWebhook(body, headers, secret)).rejects.toThrow(WebhookVerificationError);
  },
);

type Given = { body?: string; secret?: string; headers?: Record<string, string> };

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('a missing %s is named', async (name) => {
  const headers = { ...headersOf(sign(BODY, now())), [name]: '' };
  await expect(verifyWebhook(BODY, headers, SECRET)).rejects.toThrow(`${name}: missing`);
});

test.each([JSON.parse(BODY), undefined])('%j is not a body as it came', async (body) => {
  const made = verifyWebhook(body as string, headersOf(sign(BODY, now())), SECRET);
  await expect(made).rejects.toThrow('body: expected the body as it came');
});

test.each(['', 'whsec_', 'whsec_%', KEY.toString('base64'), undefined, 5])(
  '%j is not a secret of an endpoint',
  async (secret) => {
    const made = verifyWebhook(BODY, headersOf(sign(BODY, now())), secret as string);
    await expect(made).rejects.toThrow(new TypeError('secret: expected the secret of an endpoint, whsec_…'));
  },
);
