import { Agent, request } from 'undici';
import type { Price } from './billing-provider.ts';
import { type Random, seeded } from './random.ts';

/** The outcome of a call, as its holder saw it. */
export type Outcome = {
  /** 0: the connection broke. */
  readonly status: number;
  readonly code: string | undefined;
  readonly cost: string | undefined;
  readonly retryAfter: string | undefined;
  readonly bytes: Buffer;
};

/** How many calls were answered in full. */
export const answered = (outcomes: readonly Outcome[]): number =>
  outcomes.filter(({ status }) => status === 200).length;

/** Prices of as many models as there will be calls: `call-000001`…; each call has one of its own. */
export function randomPrices(count: number, seed: number, prefix = 'call'): Map<string, Price> {
  const random = seeded(seed);
  const price = () => ({ input: random.int(500_000, 8_000_000), output: random.int(1_000_000, 20_000_000) });
  return new Map(Array.from({ length: count }, (_, i) => [modelName(i, prefix), price()]));
}

export const modelName = (i: number, prefix = 'call') => `${prefix}-${String(i).padStart(6, '0')}`;

/** As `PROVIDERS_FILE` has them. */
export const providersOf = (baseUrl: string, ...prices: ReadonlyMap<string, Price>[]) => ({
  openai: { base_url: baseUrl, pricing: Object.fromEntries(prices.flatMap((each) => [...each])) },
});

/** A chat completion of random size. */
export function randomCall(model: string, random: Random): object {
  return {
    model,
    messages: [{ role: 'user', content: 'x'.repeat(random.int(1, 1_500)) }],
    max_tokens: random.int(16, 2_000),
    ...(random.int(0, 1) === 1 && { stream: true }),
  };
}

const agent = new Agent({ connections: 400, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 });

/** Makes one call. */
export async function call(url: string, body: object): Promise<Outcome> {
  try {
    const headers = { 'content-type': 'application/json' };
    const answer = await request(url, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      dispatcher: agent,
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    const header = (name: string) => answer.headers[name]?.toString();
    return {
      status: answer.statusCode,
      code: codeIn(bytes),
      cost: header('x-presign-cost'),
      retryAfter: header('retry-after'),
      bytes,
    };
  } catch {
    return { status: 0, code: undefined, cost: undefined, retryAfter: undefined, bytes: Buffer.alloc(0) };
  }
}

function codeIn(bytes: Buffer): string | undefined {
  if (!bytes.subarray(0, 10).toString().startsWith('{"error"')) return undefined;
  return (JSON.parse(bytes.toString()) as { error: { code?: string | null } }).error.code ?? undefined;
}
