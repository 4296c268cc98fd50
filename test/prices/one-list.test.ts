import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from '../spend/many-calls.ts';
import { listOf } from './price-source.ts';

const OLD = 6;
const NEW = 10;
const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 };

let folder: string;
let path: string;
let upstream: Upstream;
let stack: Stack;
/** Runs before the provider answers. */
let meanwhile = async () => {};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'presign-prices-'));
  path = join(folder, 'prices.json');
  await writeFile(path, listOf({ m: OLD }));
  const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }];
  upstream = await startUpstream(async (_seen, response) => {
    await meanwhile();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices, usage }));
  });
  stack = await startStack({
    providers: { openai: { base_url: upstream.url } },
    gateway: { priceSource: { source: { is: 'file', path }, everyMs: 50 } },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await rm(folder, { recursive: true });
});

/** Writes a list, and waits until the gateway uses it. */
async function use(dollars: number): Promise<void> {
  const text = listOf({ m: dollars });
  await writeFile(path, text);
  const id = createHash('sha256').update(text).digest('hex').slice(0, 12);
  await eventually(async () => {
    const ready = await (await fetch(`${stack.gatewayUrls[0]}/readyz`)).json();
    return (ready as { prices: readonly { id: string }[] }).prices[0]?.id === id;
  });
}

// A worker plans the large body. It has its prices from its start.
test.each([
  ['small', 'Hi'],
  ['large', 'x'.repeat(2_200_000)],
])(
  'a call with a %s body is held and charged by the list of its plan, and the next call by the new list',
  async (_size, content) => {
    await use(OLD);
    const { url } = await stack.issue({
      ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk' },
      cost_limit: 100_000_000,
    });
    const body = { model: 'm', messages: [{ role: 'user', content }], max_tokens: 100 };
    const held: number[] = [];
    meanwhile = async () => {
      held.push((await statusOf(url)).held);
      await use(NEW);
      held.push((await statusOf(url)).held);
    };
    expect((await post(url, body)).status).toBe(200);
    expect((await statusOf(url)).spent).toBe(200 * OLD);
    expect((await post(url, body)).status).toBe(200);
    expect((await statusOf(url)).spent).toBe(200 * OLD + 200 * NEW);
    const [first = 0, changed, next = 0] = held;
    expect(changed).toBe(first);
    expect(next / first).toBeCloseTo(NEW / OLD, 2);
  },
);
