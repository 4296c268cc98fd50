import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { Agent, request } from 'undici';
import { grantIdOf } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import type { Answer, Seen } from '../harness/upstream.ts';
import { startUpstream } from '../harness/upstream.ts';
import { PRICE, type Recorded } from './recorded.ts';

/** The model of one call of a test. Each call has its own model; names have one length, so all calls hold the same. */
export const modelOf = (what: string, i: number) => `${what}-${String(i).padStart(4, '0')}`;

/** The index of a call among those of its test, by its model's name. */
export const indexIn = (text: string, what: string): number =>
  Number(new RegExp(`${what}-(\\d{4})`).exec(text)?.[1] ?? Number.NaN);

export type Spending = {
  readonly stack: Stack;
  readonly seen: readonly Seen[];
  /** Issues a URL for calls of this shape, whatever their model. */
  readonly issue: (recorded: Recorded, limits?: object) => Promise<string>;
  readonly close: () => Promise<void>;
};

/** A stack whose providers all answer as given, with a price for so many models of each name. */
export async function startSpending(
  names: readonly string[],
  count: number,
  answer: Answer,
): Promise<Spending> {
  const upstream = await startUpstream(answer);
  const models = names.flatMap((name) => Array.from({ length: count }, (_, i) => modelOf(name, i)));
  const entry = {
    base_url: upstream.url,
    pricing: Object.fromEntries(models.map((model) => [model, PRICE])),
  };
  const stack = await startStack({
    providers: { openai: entry, anthropic: entry, google: entry, cohere: entry },
  });
  return {
    stack,
    seen: upstream.seen,
    issue: async ({ provider, path }, limits = { cost_limit: 1_000_000_000 }) => {
      const [pattern] = path('*').split('?');
      const first = path(modelOf(names[0] ?? '', 0)).split('?')[0];
      const paths = pattern === first ? first : [first, pattern];
      return (await stack.issue({ provider, path: paths, client_api_key: 'sk-real', ...limits })).url;
    },
    close: async () => {
      await stack.close();
      await upstream.close();
    },
  };
}

/** The address of one call of a URL, whose path may name the model. */
export function urlOf(url: string, { path }: Recorded, model: string): string {
  const [token = ''] = /^.*\/llm\/t\/[^/]+/.exec(url) ?? [];
  return `${token}${path(model)}`;
}

const agent = new Agent({ connections: 200, pipelining: 1 });

/** One call, and all bytes that came, as they came; `broken` where they did not end. */
export async function post(url: string, body: object | string, headers: Record<string, string> = {}) {
  const answer = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    dispatcher: agent,
  });
  const chunks: Buffer[] = [];
  let broken = false;
  try {
    for await (const bytes of answer.body) chunks.push(bytes as Buffer);
  } catch {
    broken = true;
  }
  return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(chunks), broken };
}

/** The ledger's rows of a URL, by model, once it has so many rows. */
export async function rowsByModel({ stack }: Spending, url: string, count: number) {
  const rows = await eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const found = await stack.db
      .select()
      .from(ledger)
      .where(eq(ledger.grantId, grantIdOf(url)));
    return found.length >= count ? found : undefined;
  });
  return new Map(rows.map((row) => [row.model ?? '', row]));
}

/** The status of a URL, as its holder reads it. */
export async function statusOf(url: string) {
  const [token = ''] = /^.*\/llm\/t\/[^/]+/.exec(url) ?? [];
  const answer = await fetch(token);
  return (await answer.json()) as { used: number; spent: number; held: number; cost_limit: number | null };
}

/** Runs work on each of these numbers, so many at a time. */
export async function eachOf(
  numbers: readonly number[],
  width: number,
  work: (i: number) => Promise<void>,
): Promise<void> {
  const rest = numbers.values();
  const lane = async () => {
    for (const i of rest) await work(i);
  };
  await Promise.all(Array.from({ length: width }, lane));
}
