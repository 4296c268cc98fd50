import type { FEE_UNITS } from '../facts/rates.ts';

/**
 * The effect of a field, or of the kind of an object, on the bound of a call, where no list of this version has it.
 * - `harmless`: its bytes bound its cost.
 * - `whole window`: it brings input that is not in the body.
 * - `fee`: as the whole window, and each one costs at most `most` of a unit and lets the model run `runs` further times.
 * - `refused`: its cost has no bound. This also refuses what this version knows.
 */
export type Declared =
  | { readonly effect: 'harmless' | 'whole window' }
  | {
      readonly effect: 'fee';
      readonly unit: (typeof FEE_UNITS)[number];
      readonly most: number;
      readonly runs: number;
    }
  | { readonly effect: 'refused'; readonly reason: string };

/** Effects by the names of places (`nameOfPlace`). */
export type DeclaredPlaces = ReadonlyMap<string, Declared>;

const RANK = { harmless: 0, 'whole window': 1, fee: 2, refused: 3 } as const;

/** Whether an effect may cost more than the effect that it replaces. */
export const isLooser = (after: Declared, before: Declared): boolean => {
  if (after.effect !== 'fee' || before.effect !== 'fee') return RANK[after.effect] < RANK[before.effect];
  return after.unit !== before.unit || after.most < before.most || after.runs < before.runs;
};

/** The stricter of two effects of one place. */
function stricter(one: Declared, other: Declared): Declared {
  if (one.effect !== 'fee' || other.effect !== 'fee')
    return RANK[other.effect] > RANK[one.effect] ? other : one;
  if (one.unit !== other.unit) return TWO_FEES;
  return { ...one, most: Math.max(one.most, other.most), runs: Math.max(one.runs, other.runs) };
}

const TWO_FEES: Declared = { effect: 'refused', reason: 'has two fees in what is known of it' };

/** All places of several lists, each with the strictest of its effects. */
export function strictestPlaces(lists: readonly (DeclaredPlaces | undefined)[]): DeclaredPlaces {
  const places = new Map<string, Declared>();
  for (const [name, declared] of lists.flatMap((list) => [...(list ?? [])])) {
    const before = places.get(name);
    places.set(name, before ? stricter(before, declared) : declared);
  }
  return places;
}
