import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { presign } from '../issuer/command.ts';
import { canReachDatabase, reachableDatabase } from '../issuer/reachable-database.ts';
import { statusOf } from '../spend/many-calls.ts';

const CITED = { source: 'https://example.com/changelog', date: '2026-11-27' };
const HARMLESS = { ...CITED, effect: 'harmless' };
const REFUSED = { ...CITED, effect: 'refused', reason: 'has a fee since yesterday' };

const fileOf = (fields: object) => JSON.stringify({ date: '2026-11-27', providers: { openai: { fields } } });

let folder: string;
let path: string;
let upstream: Upstream;
let stack: Stack;
let removeDatabase: (() => Promise<void>) | undefined;

beforeAll(async () => {
  if (canReachDatabase) removeDatabase = await reachableDatabase();
  folder = await mkdtemp(join(tmpdir(), 'presign-knowledge-'));
  path = join(folder, 'knowledge.json');
  await write(fileOf({}));
  upstream = await startUpstream(answerChat);
  const knowledgeSource = { source: { is: 'file', path }, everyMs: 50 } as const;
  const pricing = { m: { input: 1_000_000, output: 1_000_000 } };
  stack = await startStack({
    providers: { openai: { base_url: upstream.url, pricing } },
    gateways: 2,
    ...{ gateway: { knowledgeSource }, issuer: { knowledgeSource } },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await rm(folder, { recursive: true });
  await removeDatabase?.();
});

/** As operators do: a service never reads half of a file. */
async function write(text: string) {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

type Ready = {
  readonly problems: readonly { readonly store: string; readonly problem: string }[];
  readonly knowledge: { readonly source: string; readonly id: string; readonly waits: boolean };
};
const ready = async (url: string | undefined) => (await (await fetch(`${url}/readyz`)).json()) as Ready;

/** Waits until each gateway says so. */
const allSay = (isSo: (ready: Ready) => boolean) =>
  eventually(async () => (await Promise.all(stack.gatewayUrls.map(ready))).every(isSo));

/** Writes a file, and waits until each gateway has another one than before. */
async function use(text: string) {
  const before = (await ready(stack.gatewayUrls[0])).knowledge.id;
  await write(text);
  await allSay(({ knowledge }) => knowledge.id !== before);
}

const issue = () =>
  stack.issue({
    ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', cost_limit: 10_000_000 },
  });

const call = (url: string, more: object) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 },
      ...more,
    }),
  });

/** A large body is planned by a worker. */
const BODIES = [
  ['small', 'x'],
  ['large', 'x'.repeat(1_100_000)],
] as const;

test.each(BODIES)(
  'a field of a %s body passes once the file names it, without a restart, on a URL that was used before',
  async (size, note) => {
    const { url } = await issue();
    const name = `note_${size}`;
    const refused = await call(url, { [name]: note });
    expect(refused.status).toBe(422);
    const { error } = (await refused.json()) as { error: { param: string; message: string } };
    const { id, source } = (await ready(stack.gatewayUrls[0])).knowledge;
    expect(error.param).toBe(name);
    expect(error.message).toContain(`(${source}:${id})`);
    expect(error.message).toContain('KNOWLEDGE_FILE');

    await use(fileOf({ note_small: HARMLESS, [name]: HARMLESS }));
    const answer = await call(url, { [name]: note });
    expect(answer.status).toBe(200);
    expect(JSON.parse(String(upstream.seen.at(-1)?.body))).toHaveProperty(name, note);
    // Both gateways and the row of the call name the version.
    const version = `file:${(await ready(stack.gatewayUrls[0])).knowledge.id}`;
    const other = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');
    expect((await call(other, { [name]: note })).status).toBe(200);
    const requestId = answer.headers.get('x-presign-request-id');
    const row = await eventually(async () => {
      const found = await fetch(`${stack.issuerUrl}/v1/calls/${requestId}`, {
        headers: { authorization: `Bearer ${stack.apiKey}` },
      });
      return found.status === 200 && ((await found.json()) as { knowledge: string });
    });
    expect(row.knowledge).toBe(version);
    await eventually(async () => stack.logs.some((line) => line.includes(version)));
  },
);

test('a known field is refused once the file says so', async () => {
  const { url } = await issue();
  expect((await call(url, { seed: 1 })).status).toBe(200);
  await use(fileOf({ note_small: HARMLESS, note_large: HARMLESS, seed: REFUSED }));
  const refused = await call(url, { seed: 1 });
  expect(refused.status).toBe(422);
  expect(await refused.text()).toContain(`seed: ${REFUSED.reason}`);
  expect((await call(url, {})).status).toBe(200);
  expect((await statusOf(url)).used).toBe(2);
});

test.each([
  ['is no JSON', '{'],
  ['has an effect that this version does not know', fileOf({ note: { ...CITED, effect: 'free' } })],
])('a file that %s changes nothing, and each service reports it', async (_what, text) => {
  // A service that read the file before the last one may have offered it.
  await allSay(({ knowledge }) => !knowledge.waits);
  const { id } = (await ready(stack.gatewayUrls[0])).knowledge;
  await write(text);
  const says = ({ problems }: Ready) => problems.some(({ store }) => store === 'knowledge');
  await allSay(says);
  await eventually(async () => says(await ready(stack.issuerUrl)));
  expect((await ready(stack.gatewayUrls[0])).knowledge.id).toBe(id);
  const { url } = await issue();
  expect((await call(url, { note_small: 'x' })).status).toBe(200);
});

describe.skipIf(!canReachDatabase)('a file with a looser entry', () => {
  const cli = (...args: string[]) =>
    presign(['knowledge', ...args], { DATABASE_URL: stack.databaseUrl ?? '' });
  beforeEach(async () => {
    await write(fileOf({ seed: REFUSED }));
    await allSay(({ problems }) => problems.length === 0);
  });

  test('applies after the command that accepts it; until then the stricter entry applies', async () => {
    const { url } = await issue();
    await write(fileOf({ seed: HARMLESS, fresh: HARMLESS }));
    await allSay(({ knowledge }) => knowledge.waits);
    // Its new entry counts at once.
    expect((await call(url, { fresh: 1 })).status).toBe(200);
    expect((await call(url, { seed: 1 })).status).toBe(422);

    const status = await cli('status');
    const id = /file (\w+) of .* waits/.exec(status.out)?.[1] ?? '';
    expect(status.out).toMatch(/^openai +seed$/m);
    expect(await cli('accept', 'abc')).toMatchObject({ code: 1, out: '' });
    expect(await cli('accept', id)).toEqual({ code: 0, out: `${id}\n`, err: '' });
    await allSay(({ knowledge }) => !knowledge.waits && knowledge.id === id);
    expect((await call(url, { seed: 1 })).status).toBe(200);
  });
});
