import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createPresign, each, type Presign } from '@presign/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Local, startLocalForDocs } from '../docs/local.ts';

let local: Local;
let url: string;
let own: Presign;
let sample: Presign;

const keyFile = () => join(local.folder, '.presign', 'sample-api-key');
const clientOf = (file: string) => createPresign({ url, apiKey: readFileSync(file, 'utf8').trim() });

beforeAll(async () => {
  local = await startLocalForDocs();
  url = `http://127.0.0.1:${local.issuerPort}`;
  own = clientOf(join(local.folder, '.presign', 'api-key'));
  expect(existsSync(keyFile())).toBe(false);
  await local.writeSample?.(() => {});
  sample = clientOf(keyFile());
}, 900_000);
afterAll(() => local.close());

/** The longest that the sample goes back. */
const ALL = { from: Math.floor(Date.now() / 1000) - 100 * 86_400 };
const month = new Date().toISOString().slice(0, 8).concat('01');

test('the sample has hundreds of dollars over weeks, and its sums, list and budgets agree to the microdollar', async () => {
  expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
  const { data: days, total } = await sample.getUsage({ ...ALL, group_by: ['day'] });
  expect(days.length).toBeGreaterThanOrEqual(20);
  expect(total.cost).toBeGreaterThan(200_000_000);
  const createdAt = new Map<string, number>();
  for await (const session of each(sample.listSessions, { limit: 100 })) {
    createdAt.set(session.id, session.created_at);
  }
  let [calls, cost] = [0, 0];
  for await (const call of each(sample.listCalls, { limit: 100 })) {
    calls++;
    cost += call.cost ?? 0;
    expect(call.settled_at).toBeGreaterThanOrEqual(call.started_at);
    expect(call.settled_at).toBeLessThanOrEqual(Date.now() / 1000);
    expect(createdAt.get(call.session_id)).toBeLessThanOrEqual(call.started_at);
  }
  expect({ calls, cost }).toEqual({ calls: total.calls, cost: total.cost });
  const { data: budgets } = await sample.listBudgets({});
  const all = budgets.find(({ name }) => name === 'All customers');
  const { total: ofMonth } = await sample.getUsage({ from: month });
  expect(all?.current?.live?.spent).toBe(ofMonth.cost);
});

test('the sample has working hours, teams, models, tools and failures', async () => {
  const hours = new Map<number, number>();
  for await (const { settled_at: at } of each(sample.listCalls, { limit: 100 })) {
    const hour = new Date(at * 1000).getUTCHours();
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
  }
  const calls = (from: number, to: number) =>
    [...hours].reduce((sum, [hour, calls]) => sum + (hour >= from && hour < to ? calls : 0), 0);
  expect(calls(8, 18)).toBeGreaterThan(4 * calls(0, 6));
  const groups = async (by: 'model' | 'tool' | 'outcome' | 'external_user' | 'metadata.team') =>
    (await sample.getUsage({ ...ALL, group_by: [by] })).data.map((row) =>
      by === 'metadata.team' ? row.metadata?.['team'] : row[by],
    );
  expect(await groups('metadata.team')).toEqual(['research', 'search', 'support']);
  expect(await groups('model')).toContain('sandbox-pro');
  expect(await groups('tool')).toEqual(expect.arrayContaining(['add', 'echo']));
  expect(await groups('outcome')).toEqual(
    expect.arrayContaining(['passed', 'provider_error', 'provider_refused']),
  );
  const { total: ofTools } = await sample.getUsage({ ...ALL, provider: 'mcp' });
  expect([ofTools.calls > 40, ofTools.failed_calls, ofTools.cost > 0]).toEqual([true, 0, true]);
  expect((await groups('external_user')).length).toBe(10);
  const { data } = await sample.getUsageHours({ from: Math.floor(Date.now() / 1000) - 30 * 86_400 });
  expect(data.some(({ total_ms: ms }) => (ms?.p95 ?? 0) > 500)).toBe(true);
});

test('the sample has a budget near its limit, refusals with their reasons, and an API key with a policy', async () => {
  const { data: budgets } = await sample.listBudgets({ external_user: 'ada' });
  const [{ cost_limit: most, current } = {}] = budgets;
  expect((current?.live?.spent ?? 0) / (most ?? 1)).toBeGreaterThan(0.8);
  const refused = (await sample.listCalls({ outcome: 'refused', limit: 100 })).data;
  const codes = new Set(refused.map(({ failure }) => failure));
  for (const code of ['uses_exhausted', 'cost_limit_too_low', 'rate_limited', 'model_not_allowed'])
    expect(codes).toContain(code);
  const counted = (await sample.getRefusals({})).data;
  expect(counted.reduce((sum, { calls }) => sum + calls, 0)).toBe(refused.length);
  const times = new Set(refused.map(({ settled_at: at }) => at));
  expect(times.size).toBe(refused.length);
  const { data: keys } = await sample.listApiKeys({});
  expect(keys.some(({ policy }) => policy !== null)).toBe(true);
  const { data: providers } = await sample.getUsage({ ...ALL, group_by: ['provider'] });
  expect(providers.map(({ provider }) => provider)).toEqual(['mcp', 'sandbox']);
});

test('the default account has none of the sample, and can delete the sample', async () => {
  expect((await own.getUsage({})).total.calls).toBe(0);
  for (const list of [own.listSessions, own.listBudgets, own.listVirtualKeys])
    expect((await list({})).data).toEqual([]);
  const { data: accounts } = await own.listAccounts({});
  const { id = '' } = accounts.find(({ name }) => name === 'sample') ?? {};
  await own.deleteAccount({ id });
  await expect(sample.getUsage({})).rejects.toMatchObject({ status: 401 });
});

test.each([
  ['SAMPLE_DATA=false', { SAMPLE_DATA: 'false' }],
  ['SANDBOX=false', { SANDBOX: 'false' }],
  ['an API key of the operator', { BOOTSTRAP_API_KEY: `presign_sk_${'a'.repeat(43)}` }],
])('a start with %s creates no sample', async (_with, settings) => {
  const other = await startLocalForDocs(settings as Record<string, string>);
  try {
    expect(other.writeSample).toBeUndefined();
  } finally {
    await other.close();
  }
});

test("no package of the issuer or the gateway depends on the sample's package", () => {
  const root = join(import.meta.dirname, '../..');
  const manifests = ['apps', 'packages'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .map((name) => join(folder, name, 'package.json'))
      .filter((manifest) => existsSync(join(root, manifest))),
  );
  expect(manifests.length).toBeGreaterThan(5);
  for (const manifest of manifests)
    expect(readFileSync(join(root, manifest), 'utf8'), manifest).not.toContain('"@presign/local"');
  expect(readFileSync(join(root, 'infra/local/package.json'), 'utf8')).toContain('"@presign/local"');
});
