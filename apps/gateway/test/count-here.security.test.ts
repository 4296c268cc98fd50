import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { BUNDLED_KNOWLEDGE, BUNDLED_PRICES, loadProviders, tokenCounter } from '@presign/providers';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { grantMemory, type Policy } from '../src/grant/policy.ts';
import type { LlmGrant } from '../src/grant/verify.ts';
import { countHere } from '../src/llm/count-here.ts';
import type { LargeBodies } from '../src/llm/large-body.ts';
import { planBody } from '../src/llm/plan-body.ts';
import { bodyMemory } from '../src/share/body-memory.ts';
import { CountMemory } from '../src/share/count-memory.ts';
import { startBodyWorkers } from '../src/workers/body-workers.ts';

const RUNS = process.env.TEST_ALL ? 2_000 : 150;
const MIB = 1024 * 1024;

const provider = loadProviders(undefined).get('openai');
const prices = { current: () => BUNDLED_PRICES, status: () => ({ lists: [], problem: undefined }) };
const knowledge = { current: () => BUNDLED_KNOWLEDGE, providers: new Map() };
let charged = 0;
const readQuota = {
  waitMs: () => 0,
  take: (_: unknown, work: number) => {
    charged += work;
  },
};
const start = { prices, knowledge, providersFile: undefined, maxBodyBytes: 16 * MIB };
const workers = startBodyWorkers(start, readQuota);
/** The texts that workers were asked for, a list for each time. */
let asked: string[][] = [];
const bodyWorkers: LargeBodies = {
  ...workers,
  countTexts: (grant, work) => {
    asked.push(JSON.parse(Buffer.from(work.bytes).toString()) as string[]);
    return workers.countTexts(grant, work);
  },
};
const grant = { id: 'g', sessionId: 's', provider, method: 'POST' } as LlmGrant;
const newDeps = () => ({
  ...{ counts: new CountMemory(), readQuota, bodyWorkers },
  bodyMemory: bodyMemory(64 * MIB, 16 * MIB),
});
let deps = newDeps();

afterAll(() => workers.close());
beforeEach(() => {
  deps = newDeps();
  asked = [];
});

const CHAT = '/v1/chat/completions';

async function countingOf(body: string, path = CHAT, more: Partial<Policy> = {}) {
  const policy = { config: undefined, accountId: 'acc', costLimited: true, tokenLimited: true, ...more };
  const planned = await planBody({ bodyWorkers, readQuota, prices, memory: grantMemory() }, {
    ...{ grant, policy, now: Date.parse('2026-11-30T12:00:00Z'), target: { path, query: '' } },
    ...{ need: 'must', headers: {}, arrived: { raw: Buffer.from(body), isJson: true } },
  } as Parameters<typeof planBody>[1]);
  return 'refusal' in planned ? undefined : planned;
}

/** The count of a body on the event loop. */
async function counted(body: string, path = CHAT, more: Partial<Policy> = {}) {
  const here = (await countingOf(body, path, more))?.counting?.here;
  if (!here) throw new Error('it is not counted here');
  return countHere(deps, grant, here);
}

const chat = (...texts: readonly string[]) =>
  JSON.stringify({ model: 'gpt-4o', messages: texts.map((content) => ({ role: 'user', content })) });
const long = (word: string) => `${word} and some more words. `.repeat(40);

const pieces = fc.constantFrom(
  ...[
    'a word ',
    'word '.repeat(200),
    '\\n',
    '\\"',
    '→',
    'é',
    '漢字',
    '\\u0315\\u0316',
    '<|endoftext|>',
    "it's ",
  ],
  ...[
    '😀',
    '\\u2026',
    '\\ud83d\\ude00',
    '\\ud83d',
    '\\ude00 ',
    '\\/',
    '\\u0061b',
    '12345',
    '',
    '\u0301',
    ' '.repeat(90),
  ],
);
const quoted = fc.array(pieces, { maxLength: 6 }).map((all) => `"${all.join('')}"`);
const listOf = (each: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(each, { maxLength }).map((all) => `[${all.join(',')}]`);
const kind = fc.constantFrom('text', 'text', 'input_text', 'output_text', 'refusal');
const part = fc.tuple(kind, quoted).map(([type, text]) => `{"type":"${type}","text":${text}}`);
const role = fc.constantFrom('user', 'assistant', 'system', 'developer', 'tool');
const content = fc.oneof(quoted, listOf(part, 3));
const message = fc
  .tuple(role, content, fc.boolean(), fc.constantFrom('', ' ', ',"name":"n"'))
  .map(([of, text, isFirst, rest]) =>
    isFirst ? `{"content":${text},"role":"${of}"${rest}}` : `{"role":"${of}",  "content":${text}${rest}}`,
  );
const model = fc.constantFrom('gpt-4o-mini', 'gpt-4', 'gpt-4.1');
const chats = fc
  .tuple(model, listOf(message, 5), fc.constantFrom('', ',"max_tokens":9', ',"tools":[]', ',"stream":true'))
  .map(([of, messages, rest]) => [CHAT, `{"model":"${of}","messages":${messages}${rest}}`] as const);
const responses = fc
  .tuple(model, quoted, fc.oneof(quoted, listOf(message, 4)))
  .map(
    ([of, text, input]) =>
      ['/v1/responses', `{"model":"${of}","input":${input},"instructions":${text}}`] as const,
  );

test('a call is counted as by a worker that reads all of its body, whether its texts are remembered or not', async () => {
  let [compared, left] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.oneof(chats, responses), async ([path, body]) => {
      deps = newDeps();
      const planned = await countingOf(body, path);
      const counting = planned?.counting;
      if (!planned || !counting?.here) return;
      const whole = await workers.count(grant, counting.work(), counting.plan);
      expect(await countHere(deps, grant, counting.here)).toEqual(whole);
      asked = [];
      expect(await countHere(deps, grant, counting.here)).toEqual(whole);
      expect(asked).toEqual([]);
      expect(whole?.inputTokens).toBeLessThanOrEqual(planned.plan.inputTokens);
      compared++;
      left += counting.here.read().texts.length;
    }),
    { numRuns: RUNS },
  );
  expect(compared).toBeGreaterThan(RUNS / 3);
  expect(left).toBeGreaterThan(RUNS / 10);
});

test('a count is not below the tokens of the texts', async () => {
  const ranks = createRequire(import.meta.url).resolve('gpt-tokenizer/data/o200k_base.tiktoken');
  const count = tokenCounter('o200k_base', readFileSync(ranks));
  const texts = [long('é'), 'short', long('\ud800'), long('a "quote"\n'), long('漢字')];
  const tokens = texts.reduce((sum, text) => sum + count(text) + 3, 3);
  expect((await counted(chat(...texts)))?.inputTokens).toBeGreaterThanOrEqual(tokens);
  const again = await counted(chat(...texts));
  expect(again?.inputTokens).toBeGreaterThanOrEqual(tokens);
  expect(again?.inputTokens).toBeLessThan(Buffer.byteLength(texts.join('')));
});

test('in a growing conversation a worker gets each text once', async () => {
  const texts = [long('a'), 'short', long('\ud800'), `${long('é')}"\n`, long('d')];
  for (let turn = 1; turn <= texts.length; turn++) await counted(chat(...texts.slice(0, turn)));
  expect(asked).toEqual(texts.map((text) => [text]));
});

test('a worker gets no text that is not counted', async () => {
  const messages = [
    { role: 'user', content: long('user') },
    { role: 'tool', tool_call_id: 'c', content: long('tool') },
  ];
  await counted(JSON.stringify({ model: 'gpt-4o', messages }));
  expect(asked).toEqual([[long('user')]]);
});

test('accounts do not share counts', async () => {
  await counted(chat(long('a'), 'short'));
  await counted(chat(long('a'), 'short'), CHAT, { accountId: 'other' });
  expect(asked).toEqual([
    [long('a'), 'short'],
    [long('a'), 'short'],
  ]);
});

test('the texts of a config are counted, and those that it replaces are not', async () => {
  const config = { messages: [{ role: 'system', content: long('config') }] };
  await counted(chat(long('body')), CHAT, { config } as Partial<Policy>);
  expect(asked).toEqual([[long('config')]]);
});

describe('a call is not counted here', () => {
  test('if it has many parts', async () => {
    const few = (await countingOf(chat(...Array.from({ length: 1_000 }, () => 'x'))))?.counting;
    expect(few?.here).toBeDefined();
    const many = (await countingOf(chat(...Array.from({ length: 1_200 }, () => 'x'))))?.counting;
    expect(many).toBeDefined();
    expect(many?.here).toBeUndefined();
  });

  test('if there is no memory for texts that a worker must count', async () => {
    const full = { ...deps, bodyMemory: bodyMemory(512, 512) };
    const here = (await countingOf(chat(long('a'))))?.counting?.here;
    if (!here) throw new Error('it is not counted here');
    expect(await countHere(full, grant, here)).toBeUndefined();
    expect(asked).toEqual([]);
    const count = await countHere(deps, grant, here);
    expect(count?.inputTokens).toBeGreaterThan(0);
    expect(await countHere(full, grant, here)).toEqual(count);
  });

  test('if too many bodies wait for the workers', async () => {
    const busy = { ...bodyWorkers, countTexts: () => Promise.resolve(undefined) };
    const here = (await countingOf(chat(long('a'))))?.counting?.here;
    if (!here) throw new Error('it is not counted here');
    expect(await countHere({ ...deps, bodyWorkers: busy }, grant, here)).toBeUndefined();
    expect((await countHere(deps, grant, here))?.inputTokens).toBeGreaterThan(0);
  });
});

test('each count draws on the quota of its URL, also of texts that are remembered', async () => {
  const here = (await countingOf(chat(long('a'))))?.counting?.here;
  if (!here) throw new Error('it is not counted here');
  for (let times = 0; times < 2; times++) {
    charged = 0;
    await countHere(deps, grant, here);
    expect(charged).toBeGreaterThan(0);
  }
});
