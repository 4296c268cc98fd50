import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ATTACKS } from '../harness/attack-bodies.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
const ANSWER = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream(
    (_seen, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER),
  );
  const providers = { openai: { base_url: upstream.url }, google: { base_url: upstream.url } };
  stack = await startStack({ providers });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk' };
const urlOf = async (ask: object) => (await stack.issue({ ...CHAT, ...ask })).url;
const send = (url: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });

/** Each of these once took a gateway seconds, and is small enough for `pnpm test`. */
const SHORT = [
  '104 KB of combining marks',
  'a model name that backtracks',
  '50,000 names of fields for Gemini',
];

/** Requests with a body that are sent as any other is. The other attacks have files of their own. */
const PLAIN = ATTACKS.filter(
  ({ name, ask, holder, times, urls, raw, body, headers = {} }) =>
    body &&
    !holder &&
    !times &&
    !urls &&
    !raw &&
    !('servers' in ask) &&
    !('x-answer' in headers || 'x-coding' in headers) &&
    (thorough || SHORT.includes(name)),
);

/** Bodies of at most 100 KB once took a gateway up to 12 seconds each. If they did again, these would not end within their time. */
const REPEATS = thorough ? 20 : 8;
const SMALL_BYTES = 200_000;

describe('a gateway still answers another URL after', () => {
  test.each(PLAIN.map((attack) => [attack.name, attack] as const))(
    '%s',
    async (_name, { ask, body, headers }) => {
      const [attacker, bystander] = [await urlOf(ask), await urlOf({ cost_limit: 1_000_000 })];
      const bytes = body?.() ?? '';
      const times = bytes.length > SMALL_BYTES || headers ? 1 : REPEATS;
      for (let sent = 0; sent < times; sent++) {
        const answer = await send(attacker, bytes, headers);
        expect(answer.status).toBeLessThan(500);
        await answer.text();
      }
      const call = JSON.stringify({
        model: 'gpt-4o-mini',
        max_tokens: 5,
        messages: [{ role: 'user', content: 'Hi' }],
      });
      expect((await send(bystander, call)).status).toBe(200);
    },
  );
});
