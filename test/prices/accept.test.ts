import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { presign } from '../issuer/command.ts';
import { canReachDatabase, reachableDatabase } from '../issuer/reachable-database.ts';
import { post, statusOf } from '../spend/many-calls.ts';
import { listOf } from './price-source.ts';

describe.skipIf(!canReachDatabase)('a list with large drops that wait', () => {
  let folder: string;
  let path: string;
  let upstream: Upstream;
  let stack: Stack;
  let removeDatabase: () => Promise<void>;

  beforeAll(async () => {
    removeDatabase = await reachableDatabase();
    folder = await mkdtemp(join(tmpdir(), 'presign-prices-'));
    path = join(folder, 'prices.json');
    await writeFile(path, listOf({ m: 10, other: 5 }));
    const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 };
    upstream = await startUpstream((_seen, response) => {
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
    await removeDatabase();
  });

  const cli = (...args: string[]) => presign(['prices', ...args], { DATABASE_URL: stack.databaseUrl ?? '' });

  type Lists = { readonly prices: readonly { readonly id: string; readonly waits: boolean }[] };
  const lists = async () => ((await (await fetch(`${stack.gatewayUrls[0]}/readyz`)).json()) as Lists).prices;

  /** The cost of one call, in microdollars. */
  async function costOfCall(): Promise<number> {
    const { url } = await stack.issue({
      ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk' },
      cost_limit: 1_000_000,
    });
    const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 200 };
    expect((await post(url, body)).status).toBe(200);
    return (await statusOf(url)).spent;
  }

  test('applies after the command that accepts it, and not before', async () => {
    expect(await costOfCall()).toBe(200 * 10);
    await writeFile(path, listOf({ m: 2, other: 5 }));
    const id = await eventually(async () => (await lists()).find(({ waits }) => waits)?.id);
    expect(await costOfCall()).toBe(200 * 10);

    const { code, out } = await cli('status');
    expect(code).toBe(0);
    expect(out).toContain(`list ${id} of `);
    expect(out).toMatch(/^openai +m +input +10000000 +2000000$/m);
    expect(out).not.toContain('other');

    expect(await cli('accept', 'abc')).toMatchObject({ code: 1, out: '' });
    expect(await costOfCall()).toBe(200 * 10);
    expect(await cli('accept', id)).toEqual({ code: 0, out: `${id}\n`, err: '' });
    await eventually(async () => (await lists())[0]?.id === id || undefined);
    expect(await costOfCall()).toBe(200 * 2);
    expect((await cli('status')).out).not.toContain('waits');
    expect((await cli('accept', id)).code).toBe(1);
  });
});
