import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createPresign, each, type Presign } from '@presign/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { eventually } from '../harness/eventually.ts';

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
});
afterAll(() => local.close());

test('the sample has calls of many days, whose sums, list and budgets agree to the microdollar', async () => {
  expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
  const { data: days, total } = await sample.getUsage({ group_by: ['day'] });
  expect(days.length).toBeGreaterThanOrEqual(10);
  const createdAt = new Map<string, number>();
  for await (const session of each(sample.listSessions, { limit: 100 })) {
    createdAt.set(session.id, session.created_at);
  }
  let [calls, cost] = [0, 0];
  for await (const call of each(sample.listCalls, { limit: 100 })) {
    calls++;
    cost += call.cost ?? 0;
    expect(call.settled_at).toBeGreaterThanOrEqual(call.started_at);
    expect(createdAt.get(call.session_id)).toBeLessThanOrEqual(call.started_at);
  }
  expect({ calls, cost }).toEqual({ calls: total.calls, cost: total.cost });
  const { data: budgets } = await sample.listBudgets({});
  const all = budgets.find(({ name }) => name === 'All customers');
  expect(all?.current?.live?.spent).toBe(total.cost);
});

test('the sample has a budget near its limit, refusals, an API key with a policy, and an MCP server', async () => {
  const { data: budgets } = await sample.listBudgets({ external_user: 'ada' });
  const [{ cost_limit: most, current } = {}] = budgets;
  expect((current?.live?.spent ?? 0) / (most ?? 1)).toBeGreaterThan(0.8);
  await eventually(async () => {
    const codes = (await sample.getRefusals({})).data?.map(({ code }) => code) ?? [];
    return codes.includes('uses_exhausted') && codes.includes('cost_limit_too_low');
  });
  const { data: keys } = await sample.listApiKeys({});
  expect(keys.some(({ policy }) => policy !== null)).toBe(true);
  const { data: providers } = await sample.getUsage({ group_by: ['provider'] });
  expect(providers.map(({ provider }) => provider)).toEqual(['mcp', 'sandbox']);
});

test('the default account has nothing of the sample, and can delete it', async () => {
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
])('a start with %s makes no sample', async (_with, settings) => {
  const other = await startLocalForDocs(settings as Record<string, string>);
  try {
    expect(other.writeSample).toBeUndefined();
  } finally {
    await other.close();
  }
});

test('no package of the issuer and the gateway depends on the one that makes the sample', () => {
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
