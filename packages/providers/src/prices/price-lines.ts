import { FEE_UNITS, TOKEN_KINDS } from '../facts/rates.ts';
import type { Usage } from '../spend.ts';

/** A part of a call's cost: a number of units at this rate, in microdollars for a million tokens or for each other unit. */
export type PriceLine = { readonly unit: string; readonly count: number; readonly rate: number };

export type TokenKind = (typeof TOKEN_KINDS)[number];

/**
 * Kinds of tokens that are counted within another one, and are billed as that kind if they have no rate. `input` and `output` contain all
 * other kinds.
 */
export const WITHIN: Readonly<Partial<Record<TokenKind, TokenKind>>> = {
  cache_write_1h: 'cache_write',
  cache_audio_read: 'input_audio',
  cache_image_read: 'input_image',
};

/**
 * Kinds whose count includes the count of other kinds. Cached sound is included in the count of sound and in the count of cached tokens.
 */
const PARTS: Readonly<Partial<Record<TokenKind, readonly TokenKind[]>>> = {
  cache_write: ['cache_write_1h'],
  cache_read: ['cache_audio_read', 'cache_image_read'],
  input_audio: ['cache_audio_read'],
  input_image: ['cache_image_read'],
};

const WHOLES = [
  ['input', TOKEN_KINDS.filter((kind) => kind !== 'input' && !kind.startsWith('output'))],
  ['output', TOKEN_KINDS.filter((kind) => kind !== 'output' && kind.startsWith('output'))],
] as const;

/** The unit of a usage that counts tokens of each kind. */
const UNITS = Object.fromEntries(TOKEN_KINDS.map((kind) => [kind, `${kind}_tokens`])) as Record<
  TokenKind,
  string
>;

type TokenRate = (kind: TokenKind) => number | undefined;

/**
 * Works out a cost line by line. Their sum, rounded up once, is the cost.
 * @param cost whole microdollars
 * @param tokenRate of tokens of this kind in this usage
 * @param fee for each other unit
 * @returns the lines, with the rest in a line `other`, because a price may have rules that are not rates. Undefined when the usage
 * contradicts itself: it has more tokens of some kinds than of all
 */
export function linesOf(
  usage: Usage,
  cost: number,
  tokenRate: TokenRate,
  fee: (unit: (typeof FEE_UNITS)[number]) => number | undefined,
): readonly PriceLine[] | undefined {
  const fees = FEE_UNITS.map((unit) => {
    const rate = fee(unit) ?? 0;
    const isFree = unit === 'requests' && rate === 0;
    return { unit, count: isFree ? 0 : unit === 'requests' ? 1 : (usage[unit] ?? 0), rate };
  });
  const tokens = WHOLES.flatMap(([whole, kinds]) => tokenLines(usage, whole, kinds, tokenRate));
  const lines = [...tokens, ...fees].filter(({ count }) => count !== 0);
  if (!lines.every(isExact)) return undefined;
  const rest = Number(BigInt(cost) - sumOfLines(lines));
  if (rest === 0) return lines;
  return Number.isSafeInteger(rest) ? [...lines, { unit: 'other', count: 1, rate: rest }] : undefined;
}

/** The tokens that belong to one kind only. Where kinds overlap, kinds that have the rate of the whole are counted as the whole. */
function tokenLines(
  usage: Usage,
  whole: TokenKind,
  kinds: readonly TokenKind[],
  tokenRate: TokenRate,
): PriceLine[] {
  const used = (kind: TokenKind) => usage[UNITS[kind]] ?? 0;
  const line = (kind: TokenKind, count: number) => ({
    unit: UNITS[kind],
    count,
    rate: count === 0 ? 0 : (tokenRate(kind) ?? 0),
  });
  const ownCount = (kind: TokenKind) =>
    (PARTS[kind] ?? []).reduce((rest, part) => rest - used(part), used(kind));
  // Most calls use none of them.
  const parts = kinds.filter((kind) => ownCount(kind) !== 0).map((kind) => line(kind, ownCount(kind)));
  const without = (lines: readonly PriceLine[]) =>
    lines.reduce((rest, { count }) => rest - count, used(whole));
  if (without(parts) >= 0 && parts.every(({ count }) => count >= 0))
    return [line(whole, without(parts)), ...parts];
  const wholeRate = tokenRate(whole) ?? 0;
  const priced = parts.filter(({ rate }) => rate !== wholeRate);
  return [line(whole, without(priced)), ...priced];
}

const isExact = ({ count, rate }: PriceLine) =>
  Number.isSafeInteger(count) && count > 0 && Number.isSafeInteger(rate);

/** The sum of lines in whole microdollars, rounded up once. It is exact, although products of counts and rates can be beyond 2^53. */
export function sumOfLines(lines: readonly PriceLine[]): bigint {
  const each = lines.map(
    ({ unit, count, rate }) => BigInt(count) * BigInt(rate) * (unit.endsWith('_tokens') ? 1n : PER_MTOK),
  );
  return (each.reduce((sum, part) => sum + part, 0n) + PER_MTOK - 1n) / PER_MTOK;
}

const PER_MTOK = 1_000_000n;
