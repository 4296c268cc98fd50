import { runCli } from '@presign/issuer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { refused, send } from '../issuer/ask.ts';

let stack: Stack;

beforeAll(async () => {
  const pricing = { m: { input: 1_000_000, output: 2_000_000 } };
  stack = await startStack({ providers: { openai: { pricing } } });
});
afterAll(() => stack.close());

type Models = {
  readonly lists: readonly { readonly source: string }[];
  readonly data: readonly { readonly provider: string; readonly model: string; readonly source: string }[];
};
async function models(query = ''): Promise<Models> {
  const headers = { authorization: `Bearer ${stack.apiKey}` };
  const answer = await fetch(`${stack.issuerUrl}/v1/models${query}`, { headers });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Models;
}

test('the models that have a price are listed with their list and its date', async () => {
  const { lists, data } = await models();
  expect(lists.map(({ source }) => source)).toEqual(['bundled', 'bundled']);
  expect(data.length).toBeGreaterThan(500);
  expect(data.find(({ model }) => model === 'm')).toEqual({
    ...{ provider: 'openai', model: 'm', source: 'providers_file', date: null },
    rates: { input: 1_000_000, output: 2_000_000 },
  });
  expect(data.find(({ provider, model }) => provider === 'openai' && model === 'gpt-4o')).toMatchObject({
    ...{ source: 'bundled', date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) },
    rates: { input: 2_500_000, output: 10_000_000 },
  });
});

test('a provider and a model are looked up by any name that a list gives', async () => {
  const ofGroq = (await models('?provider=groq')).data;
  expect(new Set(ofGroq.map(({ provider }) => provider))).toEqual(new Set(['groq']));
  expect((await models('?provider=openai&model=gpt-4o-2024-08-06')).data).toHaveLength(1);
  expect((await models('?provider=openai&model=no-such-model')).data).toEqual([]);
  expect((await models('?provider=nobody')).data).toEqual([]);
});

test('a model without its provider is refused', async () => {
  const sent = await send(stack, { method: 'GET', path: '/v1/models?model=gpt-4o' });
  expect(refused(sent, 'invalid_request', 'provider')).toBe('provider: name the provider of the model.');
});

test('a list that is not waiting cannot be accepted', async () => {
  const { databaseUrl } = stack;
  if (databaseUrl === undefined) return;
  const notes: string[] = [];
  const io = {
    env: { DATABASE_URL: databaseUrl },
    input: async () => '',
    localKey: () => undefined,
    out: () => {},
    note: (line: string) => void notes.push(line),
  };
  expect(await runCli(['prices', 'accept', 'abc'], io)).toBe(1);
  expect(notes.join()).toContain('no price list of this id waits');
});
