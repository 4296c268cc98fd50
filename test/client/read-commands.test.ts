import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { eventually } from '../harness/eventually.ts';
import { type InstalledCommand, installCommand } from './installed-command.ts';

let local: Local;
let command: InstalledCommand;

beforeAll(async () => {
  command = await installCommand();
  local = await startLocalForDocs();
  const scope = { external_user: 'user-1' };
  await ask('/v1/budgets', { name: 'of user-1', scope, cost_limit: 5_000_000, window: 'month' });
  await callAs('user-1', 2);
  await callAs('user-2', 1);
}, 600_000);
afterAll(async () => {
  await local?.close();
  command.remove();
});

/** In the folder of `start`, without a key in the environment. */
const presign = (...args: string[]) =>
  command.run(args, { ISSUER_URL: `http://127.0.0.1:${local.issuerPort}` }, local.folder);

async function ask<T>(path: string, body: object): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${local.issuerPort}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${local.keys.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(answer.ok).toBe(true);
  return (await answer.json()) as T;
}

/** So many calls of a user that pass, and one more that has no use left. */
async function callAs(user: string, uses: number): Promise<void> {
  const sandbox = { provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' };
  const limits = { max_uses: uses, cost_limit: 50_000 };
  const tags = { external_user: user, metadata: { team: 'blue' } };
  const { url } = await ask<{ url: string }>('/v1/presign', { ...sandbox, ...limits, ...tags });
  const body = JSON.stringify({ model: 'sandbox-1', messages: [{ role: 'user', content: 'Hello' }] });
  const statuses: number[] = [];
  for (let i = 0; i <= uses; i++) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    await answer.arrayBuffer();
    statuses.push(answer.status);
  }
  expect(statuses).toEqual([...Array.from({ length: uses }, () => 200), 403]);
}

/** Runs a command until it shows this many lines, because the ledger is written a second later. */
const linesOf = (count: number, ...args: string[]) =>
  eventually(async () => {
    const { code, out, note } = await presign(...args);
    expect([code, note]).toEqual([0, '']);
    const lines = out.trimEnd().split('\n');
    return lines.length === count ? lines : undefined;
  });

test('calls shows each call, with its user, model and cost', async () => {
  const [head, ...calls] = await linesOf(4, 'calls');
  expect(head).toMatch(/^TIME +OUTCOME +STATUS +USER +MODEL OR TOOL +COST +REQUEST$/);
  for (const line of calls)
    expect(line).toMatch(/^20\S+Z +passed +200 +user-[12] +sandbox-1 +\$0\.00000\d +[\da-f-]{36}$/);
  expect(calls.map((line) => /user-\d/.exec(line)?.[0]).sort()).toEqual(['user-1', 'user-1', 'user-2']);
});

test('calls shows refused calls and their codes', async () => {
  const [, ...calls] = await linesOf(3, 'calls', '--outcome', 'refused');
  for (const line of calls) expect(line).toMatch(/ uses_exhausted +403 +user-[12] /);
});

test('filters and limits are the ones of the API', async () => {
  await linesOf(2, 'calls', '--user=user-2');
  const { out, note } = await presign('calls', '--limit', '1');
  expect([out.trimEnd().split('\n').length, note]).toEqual([
    2,
    'There are more. A larger --limit shows them.\n',
  ]);
});

test('usage is summed by the requested dimensions', async () => {
  const [, first, second, all] = await linesOf(4, 'usage');
  expect([first, second, all].map((line) => line?.split(/ {2,}/).slice(0, 3))).toEqual([
    ['user-1', '2', '0'],
    ['user-2', '1', '0'],
    ['all', '3', '0'],
  ]);
  expect((await linesOf(3, 'usage', '--by', 'provider,model'))[1]).toMatch(/^sandbox, sandbox-1 +3 /);
});

test('usage shows the groups that cost most, and the sum of all', async () => {
  const [, first, all] = await linesOf(3, 'usage', '--top', '1');
  expect([first, all].map((line) => line?.split(/ {2,}/).slice(0, 2))).toEqual([
    ['user-1', '2'],
    ['all', '3'],
  ]);
});

test('usage takes user for external_user, shows metadata, and names the option of a wrong dimension', async () => {
  expect((await linesOf(4, 'usage', '--by', 'user'))[1]).toMatch(/^user-1 +2 /);
  expect((await linesOf(3, 'usage', '--by', 'metadata.team,user', '--user', 'user-2'))[1]).toMatch(
    /^blue, user-2 +1 /,
  );
  expect(await presign('usage', '--by', 'nonsense')).toMatchObject({
    code: 1,
    note: expect.stringMatching(/^presign: --by: /),
  });
});

test('a key that the issuer does not know is refused with the address of the issuer', async () => {
  const issuer = `http://127.0.0.1:${local.issuerPort}`;
  const { code, note } = await command.run(['calls'], { ISSUER_URL: issuer, PRESIGN_API_KEY: 'wrong' });
  expect([code, note]).toEqual([1, expect.stringContaining(`${issuer} does not know this API key`)]);
});

test('refusals are counted by day and code', async () => {
  expect((await linesOf(2, 'refusals'))[1]).toMatch(/^20\d\d-\d\d-\d\d +uses_exhausted +2$/);
});

test('budgets shows a budget and its spending', async () => {
  const spent = await eventually(async () => {
    const [, line = ''] = await linesOf(2, 'budgets');
    return / 2$/.test(line) ? line : undefined;
  });
  expect(spent).toMatch(/^of user-1 +external_user=user-1 +month +\$5\.000000 +\$0\.00001\d +2$/);
});

test('--json prints each entry as the API returns it', async () => {
  const [call] = await linesOf(1, 'calls', '--user', 'user-2', '--json');
  expect(JSON.parse(call ?? '')).toMatchObject({ external_user: 'user-2', outcome: 'passed', status: 200 });
});

test.each([
  [['calls', '--help'], 0, 'Usage: presign calls [options]'],
  [['usage', '--help'], 0, '--by DIMENSIONS'],
  [['budgets', '--help'], 0, 'Usage: presign budgets [options]'],
  [['refusals', '--help'], 0, 'Usage: presign refusals [options]'],
  [['give', '--help'], 0, 'Usage: presign give DOLLARS --for TOOL [options]'],
  [['--help'], 0, 'Count refused calls by day and code'],
  [['calls', 'all'], 2, 'unexpected argument "all"'],
  [['calls', '--color', 'red'], 2, 'unknown option --color'],
  [['calls', '--user'], 2, '--user needs a value'],
  [['calls', '--outcome', 'lost'], 1, '--outcome: '],
  [['calls', '--limit', '1000'], 1, '--limit: '],
  [['usage', '--by', 'color'], 1, '--by: '],
  [['usage', '--top', '1001'], 1, '--top: '],
])('presign %j exits with %i', async (args, code, text) => {
  const ran = await presign(...args);
  expect([ran.code, ran.out + ran.note]).toEqual([code, expect.stringContaining(text)]);
});

test('the API key of `pnpm start` is sent only to this machine', async () => {
  const ran = await command.run(['calls'], { ISSUER_URL: 'http://issuer.invalid' }, local.folder);
  expect([ran.code, ran.note]).toEqual([1, expect.stringContaining('PRESIGN_API_KEY is not set')]);
});
