import { scanCredentials } from '@presign/limits';
import { credentials, virtualKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, least, refused, send } from './ask.ts';
import { askVirtualKeys, createVirtualKey, getVirtualKey } from './virtual-keys.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    if (seen.headers['x-behave'] === 'silent') return;
    if (seen.headers['x-behave'] === 'stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.write('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n');
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ key: seen.headers.authorization }));
  });
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const issue = async (id: string) =>
  (await stack.issue({ provider: 'openai', path: least.path, virtual_key: id })).url;
const over = (url: string, gateway: number) =>
  url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
const call = (url: string, behave = 'answer') =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-behave': behave },
    body: '{"model":"m","messages":[]}',
  });
/** The provider's key that a call was made with. */
const keyOf = async (url: string) => ((await (await call(url)).json()) as { key: string }).key;
const rotate = async (id: string, key: string) => {
  const sent = await askVirtualKeys(stack, 'POST', `/${id}/rotate`, { key });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as { version: number };
};
const credentialOf = async (id: string) => {
  const [row] = await stack.db
    .select({ credential: credentials })
    .from(virtualKeys)
    .innerJoin(credentials, eq(credentials.id, virtualKeys.credentialId))
    .where(eq(virtualKeys.id, id));
  if (!row) throw new Error('no such virtual key');
  return row.credential;
};
/** The versions of the sealed copies of a virtual key in Redis, one for each partition that has one. */
async function copiesOf(id: string): Promise<number[]> {
  const { id: credentialId } = await credentialOf(id);
  const found = new Map<number, number>();
  for await (const copies of scanCredentials(stack.redis)) {
    for (const copy of copies) if (copy.id === credentialId) found.set(copy.partition, copy.version);
  }
  return [...found.values()];
}

describe('a rotated virtual key', () => {
  test('sends the new key with the next call of each URL, on every gateway', async () => {
    const { id } = await createVirtualKey(stack);
    const urls = await Promise.all(Array.from({ length: 24 }, () => issue(id)));
    expect(new Set(urls.map((url) => claimsOf(stack, url).prt)).size).toBe(1);
    const everywhere = urls.flatMap((url) => [url, over(url, 1)]);
    expect(new Set(await Promise.all(everywhere.map(keyOf)))).toEqual(new Set(['Bearer sk-first']));
    expect((await rotate(id, 'sk-second')).version).toBe(2);
    expect(new Set(await Promise.all(everywhere.map(keyOf)))).toEqual(new Set(['Bearer sk-second']));
    expect((await rotate(id, 'sk-third')).version).toBe(3);
    expect(new Set(await Promise.all(everywhere.map(keyOf)))).toEqual(new Set(['Bearer sk-third']));
    // Those that no call has loaded yet get it, too.
    expect(await keyOf(over(await issue(id), 1))).toBe('Bearer sk-third');
  });

  test('sends the new key with every call that begins after the answer, while other calls run', async () => {
    const { id } = await createVirtualKey(stack, { key: 'sk-0' });
    const rotations = { done: 0, begun: 0, ended: false };
    const late: string[] = [];
    const caller = async (i: number) => {
      let url = over(await issue(id), i % 2);
      for (let n = 0; !rotations.ended; n++) {
        // Now and then a URL that no call has loaded: it is read from Postgres meanwhile.
        if (n % 3 === 0) url = over(await issue(id), i % 2);
        const least = rotations.done;
        const used = Number((await keyOf(url)).split('-')[1]);
        if (used < least || used > rotations.begun) late.push(`${used}, not ${least} to ${rotations.begun}`);
      }
    };
    const callers = Array.from({ length: 8 }, (_, i) => caller(i));
    for (let i = 1; i <= (thorough ? 12 : 5); i++) {
      rotations.begun = i;
      await rotate(id, `sk-${i}`);
      rotations.done = i;
    }
    rotations.ended = true;
    await Promise.all(callers);
    expect(late).toEqual([]);
  });

  test('that is rotated twice at once ends with one of both keys, the same at every gateway', async () => {
    const { id } = await createVirtualKey(stack);
    const urls = await Promise.all(Array.from({ length: 6 }, () => issue(id)));
    await Promise.all(urls.map(keyOf));
    await Promise.all(['sk-a', 'sk-b', 'sk-c'].map((key) => rotate(id, key)));
    const used = new Set(await Promise.all(urls.flatMap((url) => [keyOf(url), keyOf(over(url, 1))])));
    expect(used.size).toBe(1);
    expect([...used][0]).toMatch(/^Bearer sk-[abc]$/);
    expect(await copiesOf(id)).toEqual([4]);
  });

  test('is rotated by a request with one key, and nothing else', async () => {
    const { id } = await createVirtualKey(stack);
    for (const [param, body] of [
      ['key', {}],
      ['key', { key: '' }],
      ['provider', { key: 'sk-second', provider: 'anthropic' }],
    ] as const) {
      refused(await askVirtualKeys(stack, 'POST', `/${id}/rotate`, body), 'invalid_request', param);
    }
    expect((await getVirtualKey(stack, id)).version).toBe(1);
  });
});

describe('a deleted virtual key', () => {
  test('has all its URLs refused, loaded or not, on every gateway, and issues no more URLs', async () => {
    const { id } = await createVirtualKey(stack);
    const urls = await Promise.all(Array.from({ length: 12 }, () => issue(id)));
    await Promise.all(urls.slice(0, 6).map(keyOf));
    const calls = upstream.seen.length;
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    for (const url of urls.flatMap((each) => [each, over(each, 1)])) {
      const answer = await call(url);
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({ error: { code: 'grant_revoked' } });
    }
    expect(upstream.seen).toHaveLength(calls);
    const ask = { ...least, client_api_key: undefined, virtual_key: id };
    expect(refused(await send(stack, { body: ask }), 'invalid_request', 'virtual_key')).toContain('revoked');
  });

  test('has its calls in flight cut at any gateway: open streams and unanswered calls', async () => {
    const { id } = await createVirtualKey(stack);
    const streams = await Promise.all([0, 1].map(async (i) => call(over(await issue(id), i), 'stream')));
    const readers = streams.map((answer) => answer.body?.getReader());
    for (const reader of readers) await reader?.read();
    const before = upstream.seen.length;
    const waiting = [call(await issue(id), 'silent'), call(over(await issue(id), 1), 'silent')];
    await eventually(async () => (upstream.seen.length === before + 2 ? true : undefined));
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    for (const reader of readers) await expect(reader?.read()).rejects.toThrow();
    for (const answer of await Promise.all(waiting)) {
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({ error: { code: 'grant_revoked' } });
    }
  });

  test('keeps its record and loses its key in Postgres and in Redis', async () => {
    const { id } = await createVirtualKey(stack, { budget: { max_uses: 5 } });
    const url = await issue(id);
    await keyOf(url);
    expect(await copiesOf(id)).toEqual([1]);
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    expect((await credentialOf(id)).sealed).toBe('');
    expect(await copiesOf(id)).toEqual([]);
    const told = await getVirtualKey(stack, id);
    expect(told).toMatchObject({ id, budget: { live: { used: 1 } }, revoked_at: expect.any(Number) });
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    expect((await getVirtualKey(stack, id)).revoked_at).toBe(told.revoked_at);
    const body = { key: 'sk-second' };
    refused(await askVirtualKeys(stack, 'POST', `/${id}/rotate`, body), 'virtual_key_revoked');
  });
});
