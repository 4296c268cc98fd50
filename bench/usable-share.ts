/**
 * The share of a spend limit that can be used: 128 streams at once on one URL, until a call is refused with 402.
 *
 *     npx tsx usable-share.ts [limit in holds by bytes, 1000] [streams at once, 128]
 *
 * The same calls are held by their bytes (a provider of `PROVIDERS_FILE`, which has no encodings) and counted in tokens.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startStack } from '@presign/test/harness/stack.ts';
import { startUpstream } from '@presign/test/harness/upstream.ts';
import { Agent, request } from 'undici';

const HOLDS = Number(process.argv[2] ?? 1_000);
const STREAMS = Number(process.argv[3] ?? 128);

/** The price of gpt-4o, in microdollars per million tokens. */
const PRICE = { input: 2_500_000, output: 10_000_000 };
const OUTPUT_BOUND = 500;
/** 24,600 bytes of English prose, 5,801 tokens by o200k_base. */
const PROMPT =
  'A spend limit is a hard cap: at no moment is the sum of charged and held money above it, whoever calls, and however often. '.repeat(
    200,
  );
/** The usage that the provider reports. */
const PROMPT_TOKENS = 5_200;
const EVENTS = 10;
const EVENT_MS = 30;

const body = JSON.stringify({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: PROMPT }],
  max_tokens: OUTPUT_BOUND,
  stream: true,
});

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const upstream = await startUpstream(async (_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let i = 0; i < EVENTS; i++) {
    response.write(data({ choices: [{ index: 0, delta: { content: ' word' } }] }));
    await sleep(EVENT_MS);
  }
  const written = 100 + Math.floor(Math.random() * (OUTPUT_BOUND - 100));
  const usage = {
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: written,
    total_tokens: PROMPT_TOKENS + written,
  };
  response.end(`${data({ choices: [], usage })}data: [DONE]\n\n`);
});
const agent = new Agent({ connections: STREAMS, headersTimeout: 0 });
const entry = { base_url: upstream.url, pricing: { 'gpt-4o': PRICE } };
const stack = await startStack({
  gateways: 2,
  providers: { openai: entry, bytes: { ...entry, extends: 'openai' } },
});

/** Microdollars that one call holds by its bytes, as its refusal states it. */
async function byteHold(): Promise<number> {
  const url = await issue('bytes', 1);
  const { text } = await call(url);
  return (
    (JSON.parse(text) as { error: { needed: number } }).error.needed +
    ((OUTPUT_BOUND - 256) * PRICE.output) / 1e6
  );
}

const issue = async (provider: string, limit: number) =>
  (
    await stack.issue({
      ...{
        provider,
        path: '/v1/chat/completions',
        client_api_key: 'sk',
        cost_limit: limit,
        max_uses: 10_000_000,
      },
    })
  ).url;

async function call(url: string) {
  const headers = { 'content-type': 'application/json' };
  const answer = await request(url, { method: 'POST', headers, body, dispatcher: agent });
  return { status: answer.statusCode, text: await answer.body.text() };
}

const spentOf = async (url: string) => {
  const [token = ''] = /^.*\/llm\/t\/[^/]+/.exec(url) ?? [];
  const { spent } = (await (await fetch(token)).json()) as { spent: number };
  return spent;
};

async function measure(provider: string, limit: number) {
  const url = await issue(provider, limit);
  const urls = stack.gatewayUrls.map((to) => url.replace(stack.gatewayUrls[0] ?? '', to));
  const figures = { calls: 0, held: 0, firstRefusal: undefined as number | undefined };
  const cpu = process.cpuUsage();
  const lane = async (_: unknown, i: number) => {
    for (;;) {
      const { status } = await call(urls[i % 2] ?? '');
      if (status === 200) figures.calls++;
      else figures.firstRefusal ??= await spentOf(url);
      if (status === 402) return;
      if (status === 429) {
        figures.held++;
        await sleep(100);
      } else if (status !== 200) throw new Error(`answered ${status}`);
    }
  };
  await Promise.all(Array.from({ length: STREAMS }, lane));
  const { user, system } = process.cpuUsage(cpu);
  const share = (spent: number) => `${((100 * spent) / limit).toFixed(2)} %`;
  console.log(
    `${provider === 'bytes' ? 'held by bytes' : 'counted when refused'}: charged at the first refusal ${share(
      figures.firstRefusal ?? 0,
    )}, at the end ${share(await spentOf(url))}; ${figures.calls} calls, ${figures.held} × 429, ${(
      (user + system) / 1e3 / (figures.calls + figures.held)
    ).toFixed(2)} ms of CPU a request (client, services and stores in one process)`,
  );
}

const limit = Math.ceil(HOLDS * (await byteHold()));
console.log(`${STREAMS} streams on one limit of ${HOLDS} holds by bytes, ${limit} microdollars`);
for (const provider of ['bytes', 'openai']) await measure(provider, limit);
await stack.close();
await upstream.close();
await agent.close();
