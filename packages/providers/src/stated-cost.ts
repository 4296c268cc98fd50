import { isJsonObject, type JsonObject, objectIn, readObject, textOf } from './json.ts';
import type { StreamReader } from './spend.ts';
import type { Reported, StatedCost } from './usage/record.ts';

/** Reads the usage of one answer. `model` is the one that the answer names, or ''. */
export type ReadStated = (usage: JsonObject, model: string) => StatedCost;

/**
 * A cost in dollars as whole microdollars, rounded up. An amount below 0 counts as 0.
 * @param unitsPerUsd the units of a dollar in which the vendor states it
 * @returns undefined when there is none, NaN when it is no number, or larger than any bill
 */
export function statedMicrousd(cost: unknown, unitsPerUsd = 1): number | undefined {
  if (cost === undefined || cost === null) return undefined;
  const usd = typeof cost === 'number' ? cost / unitsPerUsd : Number.NaN;
  return usd <= MOST_USD ? Math.max(0, microusdOf(Math.max(0, usd))) : Number.NaN;
}

/**
 * A cost in dollars, of which the vendor states the whole, or parts, or both. The larger counts, as whole microdollars, rounded up once.
 * @param whole the field of the whole, and `parts` those of amounts that it contains. Each may be absent
 * @returns undefined when none is stated, NaN when one is no number
 */
export function statedInParts(held: unknown, whole: string, parts: readonly string[]): number | undefined {
  if (!isJsonObject(held)) return undefined;
  const amounts = parts.map((name) => held[name]).filter((value) => value !== undefined && value !== null);
  const sum = amounts.reduce<number>((all, each) => all + (typeof each === 'number' ? each : Number.NaN), 0);
  return most(statedMicrousd(held[whole]), amounts.length === 0 ? undefined : statedMicrousd(sum));
}

const MOST_USD = 1_000_000_000;

/**
 * Converts dollars, a float, to whole microdollars, rounded up. It rounds to picodollars first, so that floating-point
 * noise ($0.000195 is 0.00019500000000000002) does not add a microdollar.
 */
export const microusdOf = (usd: number): number => Number(ceilTo(BigInt(Math.round(usd * 1e12)), 1_000_000n));

const ceilTo = (value: bigint, unit: bigint): bigint =>
  value > 0n ? (value + unit - 1n) / unit : value / unit;

/** The statement of an answer, or of an event of a stream. It may be a response, or an event that has one, or a message. */
export function statedIn(answer: unknown, read: ReadStated): StatedCost {
  if (!isJsonObject(answer)) return {};
  return [answer, objectIn(answer, 'response'), objectIn(answer, 'message')]
    .flatMap(({ usage, model }) => (isJsonObject(usage) ? [read(usage, textOf(model))] : []))
    .reduce(larger, {});
}

/** A reader that also reads the statement of each event with a usage. The largest of them counts. */
export function withStated(reader: StreamReader, read: ReadStated): StreamReader {
  let stated: StatedCost = {};
  return {
    ...reader,
    event: (data, name) => {
      reader.event(data, name);
      if (data.includes('"usage"')) stated = larger(stated, statedIn(readObject(data), read));
    },
    end: () => addStated(reader.end(), stated),
  };
}

/** A report with the statement that came with it. */
export const addStated = (reported: Reported | undefined, stated: StatedCost): Reported | undefined =>
  reported && (stated.microusd !== undefined || stated.requestMicrousd !== undefined)
    ? { ...reported, stated }
    : reported;

/** Reads the usage as each of several vendors does. */
export const largestOf =
  (all: readonly ReadStated[]): ReadStated =>
  (usage, model) =>
    all.map((read) => read(usage, model)).reduce(larger, {});

const larger = (a: StatedCost, b: StatedCost): StatedCost => ({
  microusd: most(a.microusd, b.microusd),
  requestMicrousd: most(a.requestMicrousd, b.requestMicrousd),
});

/** NaN if one is. */
const most = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
