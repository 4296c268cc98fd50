import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { eventually } from '../harness/eventually.ts';
import { startStack } from '../harness/stack.ts';
import { type Billed, startBillingProvider } from './billing-provider.ts';
import { call, modelName, type Outcome, providersOf, randomCall, randomPrices } from './load.ts';
import { seeded } from './random.ts';
import { budgetOf, type Reckoning, reckon, rowsOf } from './reckon.ts';
import { refOf, type Samples, startSampler } from './sample.ts';

/** The result of many concurrent calls on one cost limit. */
export type Concurrent = {
  readonly limit: number;
  readonly outcomes: readonly (Outcome & { readonly model: string; readonly tries: number })[];
  /** The refusal that ended the spending of what the concurrent calls left. */
  readonly last: Outcome;
  readonly samples: Samples;
  readonly reckoning: Reckoning;
  readonly billed: ReadonlyMap<string, Billed>;
  /** Sums of the budget in Postgres. */
  readonly settledMicrousd: number;
  readonly used: number;
  readonly seconds: number;
};

/** Microdollars of the limit for each call: less than they would cost all together. */
const LIMIT_EACH = 6_000;
/** Calls for the rest use all that they may, at a microdollar a token. */
const SMALL_PRICE = { input: 1_000_000, output: 1_000_000 };
/** A call that is only held out asks again, but not for ever. */
const TRIES = 300;

/** Calls of random cost, all at once, over two gateways of this process; then small ones until nothing is left. */
export async function concurrentCalls(count: number, seed: number): Promise<Concurrent> {
  const limit = LIMIT_EACH * count;
  const prices = randomPrices(count, seed);
  const small = Array.from({ length: 3 * count }, (_, i) => modelName(i, 'full'));
  const smallPrices = new Map(small.map((model) => [model, SMALL_PRICE]));
  const provider = await startBillingProvider({ prices: new Map([...prices, ...smallPrices]), seed });
  const stack = await startStack({ gateways: 2, providers: providersOf(provider.url, prices, smallPrices) });
  const began = Date.now();
  try {
    const { url } = await stack.issue({
      provider: 'openai',
      path: '/v1/chat/completions',
      client_api_key: 'sk-real',
      cost_limit: limit,
      max_uses: 1_000_000,
    });
    const urls = stack.gatewayUrls.map((each) => url.replace(stack.gatewayUrls[0] ?? '', each));
    const ref = await refOf(stack.db, url);
    const sampler = startSampler(stack.redis, ref);
    const random = seeded(seed);
    const calls = [...prices.keys()].map((model) => ({ model, body: randomCall(model, random) }));
    const outcomes = await Promise.all(
      calls.map(({ model, body }, i) => patient(model, urls[i % 2] ?? '', body, i)),
    );
    const last = await spendTheRest(urls, small);
    await eventually(async () => {
      await stack.issuer.ledger.drainAll();
      return (await stack.redis.zcard(keys.leases(ref.partition))) === 0 ? true : undefined;
    });
    await sampler.stop();
    const { samples } = sampler;
    const rows = await rowsOf(stack.db, ref.id);
    const { settledMicrousd, used } = await budgetOf(stack.db, ref.budgetIds[0] ?? '');
    const { billed } = provider;
    const reckoning = reckon({ billed, rows, held: samples.held });
    const seconds = (Date.now() - began) / 1000;
    return { limit, outcomes, last, samples, reckoning, billed, settledMicrousd, used, seconds };
  } finally {
    await stack.close();
    await provider.close();
  }
}

/** A call that waits and asks again while money is only held, as an SDK does. */
async function patient(model: string, url: string, body: object, i: number) {
  for (let tries = 1; ; tries++) {
    const outcome = await call(url, body);
    if (outcome.code !== 'cost_held' || tries === TRIES) return { ...outcome, model, tries };
    if (outcome.status !== 429 || outcome.retryAfter === undefined) return { ...outcome, model, tries };
    await sleep(50 + ((tries * 37 + i * 11) % 100));
  }
}

async function spendTheRest(urls: readonly string[], models: readonly string[]): Promise<Outcome> {
  for (const [i, model] of models.entries()) {
    const body = { model, messages: [{ role: 'user', content: 'x'.repeat(1_200) }], max_tokens: 200 };
    const outcome = await call(urls[i % 2] ?? '', body);
    if (outcome.status !== 200) return outcome;
  }
  throw new Error('the limit was never reached');
}
