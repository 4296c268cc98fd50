import { calcPrice, extractUsage, findProvider } from '@pydantic/genai-prices';
import { expect } from 'vitest';
import { type JsonObject, type ModelFacts, type Reported, type Spend, spendOf } from '../../src/index.ts';
import { known } from '../apply.ts';

export const FACTS: ModelFacts = { contextWindow: 200_000, maxOutput: 64_000, reasoning: false };

/** One endpoint of a built-in provider, as the gateway uses it. */
export type Endpoint = { readonly provider: string; readonly path: string; readonly spend: Spend };

export function endpoint(provider: string, path: string): Endpoint {
  const spend = spendOf(known(provider), path);
  if (spend === undefined) throw new Error(`nothing bounds ${provider} ${path}`);
  return { provider, path, spend };
}

/** The bound of a body; throws what was refused. */
export function boundOf({ spend, path }: Endpoint, body: JsonObject, facts = FACTS) {
  const judged = judge({ spend, path }, body, facts);
  if ('unbounded' in judged) throw new Error(`${judged.unbounded.param}: ${judged.unbounded.reason}`);
  return judged.bound;
}

/** The field of a body that has no bound; undefined where it has one. */
export function refusedField(
  { spend, path }: Pick<Endpoint, 'spend' | 'path'>,
  body: JsonObject,
  facts = FACTS,
) {
  const judged = judge({ spend, path }, body, facts);
  return 'unbounded' in judged ? judged.unbounded.param : undefined;
}

const judge = ({ spend, path }: Pick<Endpoint, 'spend' | 'path'>, body: JsonObject, facts: ModelFacts) =>
  spend.bound(body, { path, bytes: Buffer.byteLength(JSON.stringify(body)), facts });

/** The usage that a stream of these events reported: the same whether all are read, or only those that matter. */
export function streamed(
  { spend }: Pick<Endpoint, 'spend'>,
  events: readonly unknown[],
): Reported | undefined {
  const [all, few] = [spend.readStream?.(), spend.readStream?.()];
  for (const event of events) {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    all?.event(data, undefined);
    if (few?.matters?.(Buffer.from(`data: ${data}\r\n\r\n`)) ?? true) few?.event(data, undefined);
  }
  expect(few?.end()).toEqual(all?.end());
  return all?.end();
}

/** That our usage costs what the price list computes from the whole answer. */
export function costsAsListed(
  provider: string,
  model: string,
  ours: Reported | undefined,
  answer: unknown,
  flavor?: string,
) {
  const listed = findProvider({ providerId: provider });
  if (listed === undefined || ours === undefined) throw new Error(`no prices of ${provider}, or no usage`);
  const theirs = extractUsage(listed, answer, flavor);
  const price = (usage: Reported['usage'] | typeof theirs.usage) =>
    calcPrice({ ...usage }, model, { providerId: provider })?.total_price;
  expect(price(ours.usage)).toBeGreaterThan(0);
  expect(price(ours.usage)).toBeCloseTo(price(theirs.usage) ?? Number.NaN, 12);
}
