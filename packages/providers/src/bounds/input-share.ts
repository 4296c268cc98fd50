import type { ModelFacts, Unbounded } from '../spend.ts';
import { asUnbounded, below, type Effect, unknownEffect, worse } from './allow-list.ts';
import { grownByNormalisingAll, grownByRewritingValue } from './count-text.ts';

/**
 * The input that one part of a body adds: its effect, and the tokens beyond one for each of its bytes. `extra` is
 * negative if the bytes are not text, as for an image.
 */
export type Share = { readonly effect: Effect; readonly extra: number };

export const NOTHING: Share = { effect: 'harmless', extra: 0 };

/** Input that is not in the body: the whole context window. */
export const WHOLE_WINDOW: Share = { effect: 'whole window', extra: 0 };

export const unboundedShare = (reason: string): Share => ({ effect: { unbounded: reason }, extra: 0 });

/** A part of an unknown kind, by the place that names it. */
export const unknownShare = (reason: string, at = 'type'): Share => ({
  effect: unknownEffect(reason, at),
  extra: 0,
});

/** An unknown field, which names the place itself. */
export const unknownField = (reason: string): Share => ({
  effect: { unbounded: reason, isUnknown: true },
  extra: 0,
});

/** Several parts as one. */
export const together = (shares: readonly Share[]): Share => ({
  effect: shares.reduce<Effect>((known, { effect }) => worse(known, effect), 'harmless'),
  extra: shares.reduce((sum, { extra }) => sum + extra, 0),
});

/** A part that was found below a field or an index. */
export const shareBelow = (place: string | number, { effect, extra }: Share): Share => ({
  effect: below(place, effect),
  extra,
});

/** All elements of a list, or a single element that the API takes instead of a list. */
export const shareOfEach = (value: unknown, shareOf: (element: unknown) => Share): Share =>
  Array.isArray(value)
    ? together(value.map((element, index) => shareBelow(index, shareOf(element))))
    : shareOf(value);

/** All text in a value that the provider gives to the model unchanged. */
export const textShare = (value: unknown): Share => ({
  effect: 'harmless',
  extra: grownByNormalisingAll(value),
});

/** JSON that the provider rewrites for the prompt: tool definitions, arguments, documents. */
export function rewrittenShare(value: unknown): Share {
  if (value === undefined) return NOTHING;
  return together([textShare(value), { effect: 'harmless', extra: grownByRewritingValue(value) }]);
}

/**
 * Most input tokens of a call: one for each byte of the body and what its parts add, or the context window.
 * @param fixed tokens that the provider adds of its own
 * @param passes how often the model can read its context in one call
 */
export function boundInput(
  { effect, extra }: Share,
  { bytes, facts }: { readonly bytes: number; readonly facts: ModelFacts },
  { fixed = 0, passes = 1 }: { readonly fixed?: number; readonly passes?: number } = {},
): { readonly tokens: number } | { readonly unbounded: Unbounded } {
  if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
  const window = facts.contextWindow;
  if (effect === 'harmless' && passes === 1) {
    return { tokens: Math.min(window ?? Number.MAX_SAFE_INTEGER, Math.max(0, bytes + extra + fixed)) };
  }
  if (window !== undefined) return { tokens: window * passes };
  return {
    unbounded: {
      param: 'model',
      reason: 'its context window is not known, and more is read than the body holds',
    },
  };
}
