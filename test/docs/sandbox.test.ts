import { readFileSync } from 'node:fs';
import { startSandboxLlm, tone } from '@presign/local';
import { loadProviders } from '@presign/providers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSocket } from '../sockets/holder.ts';
import { startLocalForDocs } from './local.ts';

const page = readFileSync(new URL('../../docs/guides/sandbox.md', import.meta.url), 'utf8');
const cell = (pattern: RegExp) =>
  [...page.matchAll(pattern)].map(([, first = '', second = '']) => [first, second]);

const paths = cell(/^\| `(\/\S+)` +\| `(\w+)`/gm);
const models = cell(/^\| `(sandbox-\S+)` +\| ([\d,]+ microdollars)/gm).map(([model]) => model);
const headers = { authorization: 'Bearer sk-sandbox', 'content-type': 'application/json' };

let sandbox: Awaited<ReturnType<typeof startSandboxLlm>>;
beforeAll(async () => {
  sandbox = await startSandboxLlm();
});
afterAll(() => sandbox.close());

test('the page names paths and models', () => {
  expect(paths.length).toBeGreaterThan(5);
  expect(models.length).toBeGreaterThan(0);
});

test.each(paths)('the sandbox has %s', async (path, method = '') => {
  const body = method === 'POST' ? { body: '{}' } : {};
  const answer = await fetch(sandbox.url + path, { method, headers, ...body });
  expect(answer.status).toBe(method === 'POST' ? 400 : 200);
});

test('the models on the page are those of the sandbox', async () => {
  const answer = await fetch(`${sandbox.url}/v1/models`, { headers });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(models);
});

test('the PROVIDERS_FILE on the page is valid', () => {
  const [file] = /^```json\n(.*?)^```/ms.exec(page)?.slice(1) ?? [];
  expect(
    loadProviders(file)
      .get('sandbox')
      ?.pricing?.has(models[0] ?? ''),
  ).toBe(true);
});

test('a speech to the sandbox is answered by a gateway turn with the hold and the cost of the page', async () => {
  const local = await startLocalForDocs();
  try {
    const issued = await fetch(`http://127.0.0.1:${local.issuerPort}/v1/presign`, {
      method: 'POST',
      headers: { authorization: `Bearer ${local.keys.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ provider: 'sandbox', path: '/v1/realtime', client_api_key: 'sk-sandbox', sockets: true },
        ...{ max_uses: 1, cost_limit: 1_310_720 },
      }),
    });
    const { url } = (await issued.json()) as { url: string };
    const { send, next, socket, closed } = await openSocket(`${url}?model=gpt-realtime`);
    const speak = () =>
      send({
        type: 'input_audio_buffer.append',
        audio: Buffer.concat([tone(500, 0), Buffer.alloc(48 * 600)]).toString('base64'),
      });
    speak();
    const { response } = (await next('response.done')) as { response: { usage: Usage } };
    const { input_token_details: input, output_token_details: output } = response.usage;
    expect(input).toMatchObject({ text_tokens: 0, audio_tokens: 5 });
    const [, inText, outText, inSound, outSound] =
      /cost \$(\d+) in and \$(\d+) out, of sound\s+\$(\d+) and \$(\d+)/.exec(page)?.map(Number) ?? [];
    const spent = (await (await fetch(url.replace('/v1/realtime', ''))).json()) as object;
    expect([inText, outText, inSound, outSound].every((rate) => Number(rate) > 0)).toBe(true);
    expect(spent).toMatchObject({
      used: 1,
      held: 0,
      spent:
        input.audio_tokens * Number(inSound) +
        output.text_tokens * Number(outText) +
        output.audio_tokens * Number(outSound),
    });
    speak();
    expect(await next('error')).toMatchObject({ error: { code: 'uses_exhausted' } });
    expect(await closed).toMatchObject({ code: 4402 });
    socket.close();
  } finally {
    await local.close();
  }
});

type Tokens = { readonly text_tokens: number; readonly audio_tokens: number };
type Usage = { readonly input_token_details: Tokens; readonly output_token_details: Tokens };
