import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ModelInfo } from '@pydantic/genai-prices';
import { isJsonObject } from '../json.ts';
import type { ModelPrice } from '../provider.ts';
import { listedPricing } from './listed-price.ts';
import { BUNDLED_LIST, type PriceList } from './price-list.ts';

/** A rate that falls to less than half, or a context window, by which calls hold less. */
export type Drop = {
  /** The provider as lists name it. */
  readonly vendor: string;
  readonly model: string;
  readonly unit: keyof ModelPrice | 'context_window';
  /** In microdollars, or in tokens. */
  readonly from: number;
  readonly to: number;
};

/** A fall to less than one half is large. */
const LARGE = 2;

/** How many models are compared before other work gets a turn. */
const AT_ONCE = 5;

/** How many future dates of a provider are compared. */
const MOST_DATES = 12;

/**
 * Finds the rates and context windows that fall to less than half from one list to the next, today or on a date for which
 * the new list states prices. A model that only one list prices is no drop.
 */
export async function largeDrops(before: PriceList, after: PriceList, now: number): Promise<readonly Drop[]> {
  const drops: Drop[] = [];
  let compared = 0;
  for (const [vendor, { models }] of before.providers) {
    const times = [now, ...comingDates(after.providers.get(vendor)?.models ?? [], now)];
    for (const model of new Set(models.flatMap(namesOf))) {
      for (const time of times) drops.push(...dropsOf(before, after, vendor, model, time));
      compared += 1;
      if (compared % AT_ONCE === 0) await nextTurn();
    }
  }
  return [...new Map(drops.map((drop) => [`${drop.vendor} ${drop.model} ${drop.unit}`, drop])).values()];
}

function dropsOf(before: PriceList, after: PriceList, vendor: string, model: string, time: number): Drop[] {
  const bundled = listedPricing(BUNDLED_LIST, vendor, model, undefined, time);
  const old = listedPricing(before, vendor, model, bundled, time);
  // A model that the new list leaves out has the price of the list below.
  const fresh = listedPricing(after, vendor, model, bundled, time) ?? bundled;
  if (!old || !fresh) return [];
  const pairs = Object.entries(old.rates).map(
    ([unit, from]) => [unit as Drop['unit'], from, fresh.rates[unit as keyof ModelPrice]] as const,
  );
  return [...pairs, ['context_window', old.contextWindow, fresh.contextWindow] as const].flatMap(
    ([unit, from, to]) =>
      from !== undefined && to !== undefined && to * LARGE < from ? [{ vendor, model, unit, from, to }] : [],
  );
}

/** Names that certainly find an entry: its id, and those that its match spells out. */
function namesOf({ id, match }: ModelInfo): readonly string[] {
  const spelled = (clause: unknown): readonly string[] => {
    if (!isJsonObject(clause)) return [];
    return Object.entries(clause).flatMap(([kind, value]) => {
      if (Array.isArray(value)) return value.flatMap(spelled);
      return typeof value === 'string' && ['equals', 'starts_with'].includes(kind) ? [value] : [];
    });
  };
  return [id, ...spelled(match)];
}

function comingDates(models: readonly ModelInfo[], now: number): readonly number[] {
  const dates = models
    .flatMap(({ prices }) => (Array.isArray(prices) ? prices : []))
    .flatMap(({ constraint }) =>
      constraint && 'start_date' in constraint ? [Date.parse(constraint.start_date)] : [],
    )
    .filter((date) => date > now);
  return [...new Set(dates)].sort((a, b) => a - b).slice(0, MOST_DATES);
}
