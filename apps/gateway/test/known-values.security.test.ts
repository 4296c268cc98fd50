import { BUNDLED_PRICES, loadProviders } from '@presign/providers';
import { expect, test } from 'vitest';
import { compileRules, NO_RULES, type RulesSource } from '../src/grant/call-rules.ts';
import { type AccountValues, KnownValues } from '../src/json/known-values.ts';
import { MODEST } from '../src/llm/body.ts';
import { planRead, scanToPlan } from '../src/llm/plan-read.ts';

const provider = loadProviders(undefined).get('openai');
if (!provider) throw new Error('openai');
const MIB = 1024 * 1024;

const toolsOf = (name: string, times = 40) =>
  JSON.stringify(
    Array.from({ length: times }, (_, i) => ({ type: 'function', function: { name: `${name}_${i}` } })),
  );
const bodyOf = (tools: string, more = '') =>
  `{"model":"gpt-4o-mini","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":${tools}${more}}`;

/** Plans a call, and returns how many of its values were known, or its refusal. */
function plan(known: AccountValues, text: string, source: RulesSource = { config: undefined }) {
  const raw = Buffer.from(text);
  const rules = source.config || source.models ? compileRules(source) : NO_RULES;
  const asked = {
    ...{ grant: { provider, method: 'POST' }, target: { path: '/v1/chat/completions', query: '' } },
    ...{ rules, limited: { costLimited: true, tokenLimited: false } },
    ...{ at: { prices: BUNDLED_PRICES, now: Date.parse('2026-11-30T12:00:00Z') }, known },
  } as Parameters<typeof scanToPlan>[2];
  const scan = scanToPlan(raw, 'must', asked, MODEST);
  let isReadAgain = false;
  const planned = planRead(raw, 'must', asked, scan, () => {
    isReadAgain = true;
    return true;
  });
  if (planned && 'refusal' in planned) return planned.refusal.code;
  return 'excess' in scan || isReadAgain ? -1 : scan.values.filter((each) => each.known).length;
}

test('tools that an account has sent are known, whatever stands around them', () => {
  const known = new KnownValues(MIB).of('a');
  expect(plan(known, bodyOf(toolsOf('read')))).toBe(0);
  expect(plan(known, bodyOf(toolsOf('read')))).toBe(1);
  expect(plan(known, bodyOf(toolsOf('read'), ',"stream":true'))).toBe(1);
  expect(plan(known, bodyOf(toolsOf('write')))).toBe(0);
});

test('no account knows the tools of another', () => {
  const all = new KnownValues(MIB);
  plan(all.of('a'), bodyOf(toolsOf('read')));
  expect([plan(all.of('b'), bodyOf(toolsOf('read'))), plan(all.of('a'), bodyOf(toolsOf('read')))]).toEqual([
    0, 1,
  ]);
});

test('an account knows its last eight lists, and all accounts together a bounded number of bytes', () => {
  const all = new KnownValues(MIB);
  const names = Array.from({ length: 9 }, (_, i) => `tool${i}`);
  for (const name of names) plan(all.of('a'), bodyOf(toolsOf(name)));
  // To look for one makes it the last.
  const found = (name: string) => plan(all.of('a'), bodyOf(toolsOf(name)));
  expect(names.slice(1).map(found)).toEqual(Array(8).fill(1));
  expect(found('tool0')).toBe(0);
  for (let i = 0; i < 100; i++) plan(all.of(`account ${i}`), bodyOf(toolsOf('read')));
  expect(plan(all.of('account 99'), bodyOf(toolsOf('read')))).toBe(1);
  expect(plan(all.of('account 1'), bodyOf(toolsOf('read')))).toBe(0);
});

test.each<[string, string]>([
  ['a short list', toolsOf('read', 4)],
  ['a list of more than 256 KiB', toolsOf('read', 6_000)],
])('%s is not kept', (_what, tools) => {
  const known = new KnownValues(64 * MIB).of('a');
  expect([plan(known, bodyOf(tools)), plan(known, bodyOf(tools))]).toEqual([0, 0]);
});

test('tools of a refused call, or with a name that is there twice, are not kept', () => {
  const known = new KnownValues(MIB).of('a');
  const twice = toolsOf('read').replace('"name":"read_3"', '"name":"x","name":"read_3"');
  for (const body of [
    bodyOf(twice),
    bodyOf(toolsOf('read'), ',"tools":[]'),
    bodyOf(toolsOf('read'), ',"a":1'),
  ])
    for (let i = 0; i < 2; i++) expect(plan(known, body)).toMatch(/invalid_request|cost_unbounded/);
  expect(plan(known, bodyOf(toolsOf('read')))).toBe(0);
});

test('a second list of tools is found although the first is known', () => {
  const known = new KnownValues(MIB).of('a');
  for (const _ of [1, 2]) plan(known, bodyOf(toolsOf('read')));
  expect(plan(known, bodyOf(toolsOf('read'), `,"tools":${toolsOf('write')}`))).toBe('invalid_request');
  expect(plan(known, bodyOf(toolsOf('read'), `,"TOOLS":${toolsOf('write')}`))).toBe('cost_unbounded');
});

test('where a config has names within the tools, they are judged on each call', () => {
  const known = new KnownValues(MIB).of('a');
  const source = { config: { tools: { Name: 1 } } };
  for (const _ of [1, 2]) plan(known, bodyOf(toolsOf('read')));
  expect(plan(known, bodyOf('{"name":1}'), source)).toBe('invalid_request');
  const rules = compileRules({ config: { tools: { a: 1 } } });
  const asked = { grant: { provider, method: 'POST' }, target: { path: '/v1/chat/completions', query: '' } };
  const raw = Buffer.from(bodyOf(toolsOf('read')));
  expect(scanToPlan(raw, 'must', { ...asked, rules, known } as never, MODEST)).toMatchObject({ values: [] });
});

test('the bounds of a body count the parts and the depth of what is known', () => {
  const known = new KnownValues(64 * MIB).of('a');
  const tools = toolsOf('read', 2_000);
  for (const _ of [1, 2]) plan(known, bodyOf(tools));
  const raw = Buffer.from(bodyOf(tools));
  const asked = { grant: { provider, method: 'POST' }, target: { path: '/v1/chat/completions', query: '' } };
  const scan = (most: { depth: number; parts: number }) =>
    scanToPlan(raw, 'must', { ...asked, rules: NO_RULES, known } as never, most);
  const whole = scan({ depth: 9, parts: 100_000 });
  if ('excess' in whole) throw new Error('it has bounds');
  expect(whole.values[0]?.known?.depth).toBe(3);
  expect(scan({ depth: 4, parts: whole.parts })).toEqual(whole);
  expect(scan({ depth: 4, parts: whole.parts - 1 })).toHaveProperty('excess');
  expect(scan({ depth: 3, parts: whole.parts })).toHaveProperty('excess');
});
