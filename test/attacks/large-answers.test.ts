import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

const MIB = 1024 * 1024;
const usage = { prompt_tokens: 20, total_tokens: 20 };
const ANSWER = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });
const NUMBERS = Buffer.from('-0.01234567,'.repeat(MIB / 12));
const EVENTS = Buffer.from('data: {}\n\n'.repeat(MIB / 10));
/** Reading events takes longer. */
const ANSWER_MIB = { numbers: 8, events: 6 };

/** Calls answered while the large answers are read: without turns there were 7 next to numbers, with them 112 to 289. */
const ENOUGH = 31;

let large: Upstream;
let small: Upstream;
let stack: Stack;
/** Large answers whose last byte has been taken. */
let ended = 0;
beforeAll(async () => {
  large = await startUpstream((seen, response) => {
    const isStream = seen.headers['x-answer'] === 'events';
    let left = ANSWER_MIB[isStream ? 'events' : 'numbers'];
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    response.write(isStream ? '\n' : '{"data":[');
    const more = () => {
      while (left-- > 0)
        if (!response.write(isStream ? EVENTS : NUMBERS)) return response.once('drain', more);
      return response.end(`0],"usage":${JSON.stringify(usage)}}`).once('close', () => ended++);
    };
    more();
  });
  small = await startUpstream(
    (_seen, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER),
  );
  stack = await startStack({
    providers: { openai: { base_url: large.url }, mistral: { base_url: small.url } },
  });
});
afterAll(async () => {
  // First the answers that are still being read.
  await Promise.all([large.close(), small.close()]);
  await stack.close();
});

const issueLarge = async (path = '/v1/embeddings') =>
  (await stack.issue({ provider: 'openai', path, client_api_key: 'sk' })).url;
const issueSmall = async () =>
  (await stack.issue({ provider: 'mistral', path: '/v1/chat/completions', client_api_key: 'sk' })).url;
const headers = { 'content-type': 'application/json' };

async function call(url: string) {
  const body = JSON.stringify({ model: 'mistral-small-latest', messages: [] });
  const answer = await fetch(url, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  return answer.status;
}

/** Asks for a large answer, and leaves with its first bytes. Resolves to its status. */
const leave = (url: string, answer = 'numbers') =>
  new Promise<number | undefined>((resolve) => {
    const asked = request(
      url,
      { method: 'POST', headers: { ...headers, 'x-answer': answer }, agent: false },
      (came) => {
        came.once('data', () => {
          asked.destroy();
          resolve(came.statusCode);
        });
      },
    );
    const body = { model: 'any', input: 'x', ...(answer === 'events' && { stream: true }) };
    asked.on('error', () => {}).end(JSON.stringify(body));
  });

test.each([
  ['numbers', 8],
  ['events', 2],
])(
  'calls of another URL are answered while a client of one URL abandons long answers of %s',
  async (kind, count) => {
    const path = kind === 'events' ? '/v1/chat/completions' : undefined;
    const [attacker, bystander] = [await issueLarge(path), await issueSmall()];
    expect(await call(bystander)).toBe(200);
    const before = ended;
    await Promise.all(Array.from({ length: count }, () => leave(attacker, kind)));
    let answered = 0;
    while (ended < before + count && answered < ENOUGH) {
      expect(await call(bystander)).toBe(200);
      answered++;
    }
    expect(answered).toBe(ENOUGH);
  },
);

test('a URL whose client abandons very many answers is refused until they are read, and another URL is not', async () => {
  const [attacker, bystander] = [await issueLarge(), await issueSmall()];
  expect(await Promise.all(Array.from({ length: 100 }, () => leave(attacker)))).toContain(200);
  await eventually(async () => ((await leave(attacker)) === 503 ? true : undefined));
  expect(await call(bystander)).toBe(200);
});
