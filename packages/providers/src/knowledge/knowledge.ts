import { isModest, parseJson } from '@presign/schema';
import * as z from 'zod';
import { isCostlyBeta } from '../bounds/betas.ts';
import { HARMLESS_NAME, PLACE_LENGTH } from '../bounds/beyond-lists.ts';
import { type Declared, isLooser, strictestPlaces } from '../bounds/declared.ts';
import { isTokens } from '../json.ts';
import {
  isPrintable,
  LIST_MAX_BYTES,
  ListError,
  type Listed,
  listId,
  type Origin,
  TOO_LARGE,
} from '../kept/listed.ts';
import { NAME_MAX_CHARS } from '../model-names.ts';
import type { ModelRow, Provider } from '../provider.ts';
import { isCostlyCount } from '../usage/costly-counts.ts';
import { BETA_NAME, USAGE_NAME } from '../usage/names.ts';
import { BUILT_IN_PROVIDERS, largerRow } from '../vendors.ts';
import { DATE, placeEntry, SOURCE, whyOf } from './place.ts';

/** The entries of a file about one provider, beyond this version's own lists. */
type Additions = {
  readonly places: ReadonlyMap<string, Declared>;
  /** By the name of a beta. */
  readonly betas: ReadonlyMap<string, 'harmless' | 'refused'>;
  readonly models: ReadonlyMap<string, ModelRow>;
  /** Counts of usage that cost nothing. */
  readonly freeUsage: ReadonlySet<string>;
};

/** Facts about providers beyond this version's own lists. */
export type Knowledge = Listed & { readonly providers: ReadonlyMap<string, Additions> };

/**
 * No more than this version's own lists (`facts/`). `data/knowledge.json` publishes facts for earlier versions: those that are new to them
 * and harmless by themselves. A test compares its id and its date.
 */
export const BUNDLED_KNOWLEDGE: Knowledge = {
  id: '8894cdcba5f3',
  source: 'bundled',
  date: '2026-11-27',
  providers: new Map(),
};

const MODEST = { depth: 10, parts: 100_000 };
/** No provider needs more entries of a kind. */
const MOST = 500;

/** Each entry says where it is from and when it was read, for the people who review it. */
const cited = { source: SOURCE, date: DATE };

const tokens = z.number().refine(isTokens, 'expected a whole number of tokens').optional();
const model = z.strictObject({ ...cited, window: tokens, output: tokens, thinks: z.boolean() });

const betaName = z.string().regex(BETA_NAME, 'is no name of a beta');

const usageName = z
  .string()
  .max(PLACE_LENGTH)
  .regex(USAGE_NAME, 'is no name of a count')
  .refine((name) => !isCostlyCount(name), 'is known to cost money');

const named = <T extends z.ZodType>(name: z.ZodType<string, string>, entry: T) =>
  z
    .record(name, entry)
    .refine((entries) => Object.keys(entries).length <= MOST, `expected at most ${MOST} entries`)
    .default({} as never);

const file = z.strictObject({
  date: DATE,
  providers: z.record(
    z.string().refine((id) => BUILT_IN_PROVIDERS.has(id), 'is no provider of this version'),
    z.strictObject({
      fields: named(
        z.string().max(PLACE_LENGTH).regex(HARMLESS_NAME, 'is no name of a field or a kind'),
        placeEntry(cited),
      ),
      betas: named(betaName, z.strictObject({ ...cited, effect: z.enum(['harmless', 'refused']) })).refine(
        (betas) =>
          Object.entries(betas).every(([name, { effect }]) => effect !== 'harmless' || !isCostlyBeta(name)),
        'expected no beta that is known to change a price',
      ),
      models: named(
        z.string().min(1).max(NAME_MAX_CHARS).refine(isPrintable, 'is no name of a model'),
        model,
      ),
      free_usage: named(usageName, z.strictObject(cited)),
    }),
  ),
});

/**
 * Reads a knowledge file. A file for a later version may contain more. If it contains anything that this version does not know, it is
 * unusable, and the last usable file stays in use.
 * @throws ListError that names the first entry at fault
 */
export function readKnowledge(text: string, origin: Origin): Knowledge {
  const bytes = Buffer.from(text);
  if (bytes.length > LIST_MAX_BYTES) throw new ListError(TOO_LARGE);
  const read = file.safeParse(isModest(bytes, MODEST) ? parseJson(text) : undefined);
  if (!read.success) {
    const [issue] = read.error.issues;
    const at = (issue?.path ?? []).map(String).join('.').slice(0, 200);
    throw new ListError(`is no knowledge file${at && ` (${at}: ${whyOf(issue)})`}`);
  }
  const providers = Object.entries(read.data.providers).map(([id, each]): [string, Additions] => [
    id,
    {
      places: new Map(Object.entries(each.fields)),
      betas: mapOf(each.betas, ({ effect }) => effect),
      models: mapOf(
        each.models,
        ({ window, output, thinks }): ModelRow => [window, output, thinks ? 'thinks' : undefined],
      ),
      freeUsage: new Set(Object.keys(each.free_usage)),
    },
  ]);
  return { ...origin, id: listId(text), providers: new Map(providers) };
}

const mapOf = <T, U>(entries: Readonly<Record<string, T>>, read: (entry: T) => U) =>
  new Map(Object.entries(entries).map(([name, entry]) => [name, read(entry)]));

/** An entry that a newer file makes cheaper. */
export type Loosened = { readonly provider: string; readonly entry: string };

/** The entries of a file that a newer one makes cheaper, or leaves out although they were stricter than this version. */
export function loosenedEntries(before: Knowledge, after: Knowledge): readonly Loosened[] {
  return [...before.providers].flatMap(([provider, known]) => {
    const now = after.providers.get(provider);
    const places = [...known.places].flatMap(([name, declared]) => {
      const next = now?.places.get(name);
      // A fee that is removed could come back smaller, as a new entry.
      const looser = next ? isLooser(next, declared) : declared.effect !== 'harmless';
      return looser ? [name] : [];
    });
    const betas = [...known.betas].flatMap(([name, effect]) =>
      effect === 'refused' && now?.betas.get(name) !== 'refused' ? [name] : [],
    );
    const models = [...known.models].flatMap(([name, row]) => {
      const next = now?.models.get(name);
      return next && !isSmaller(next, row) ? [] : [name];
    });
    return [...places, ...betas, ...models].map((entry) => ({ provider, entry }));
  });
}

const isSmaller = ([window, output, thinks]: ModelRow, before: ModelRow): boolean =>
  (window ?? Number.POSITIVE_INFINITY) < (before[0] ?? Number.POSITIVE_INFINITY) ||
  (output ?? Number.POSITIVE_INFINITY) < (before[1] ?? Number.POSITIVE_INFINITY) ||
  (thinks === undefined && before[2] !== undefined);

/** A file and a newer one that waits for the operator. All entries of both count. Where both have an entry, the stricter one counts. */
export function together(good: Knowledge, offered: Knowledge | undefined): Knowledge {
  if (!offered) return good;
  const ids = new Set([...good.providers.keys(), ...offered.providers.keys()]);
  const providers = [...ids].map((id): [string, Additions] => {
    const both = [good, offered].flatMap(({ providers: all }) => all.get(id) ?? []);
    const betas = both.flatMap((each) => [...each.betas]);
    const refused = betas.filter(([, effect]) => effect === 'refused');
    return [
      id,
      {
        places: strictestPlaces(both.map(({ places }) => places)),
        betas: new Map([...betas, ...refused]),
        models: both.reduce<Additions['models']>((all, { models }) => withModels(all, models), new Map()),
        freeUsage: new Set(both.flatMap((each) => [...each.freeUsage])),
      },
    ];
  });
  return { ...good, id: `${good.id}+${offered.id}`, providers: new Map(providers) };
}

/** Rows of models with those of another list: the larger figure counts. */
function withModels(
  rows: ReadonlyMap<string, ModelRow>,
  more: ReadonlyMap<string, ModelRow>,
): Map<string, ModelRow> {
  const all = new Map(rows);
  for (const [name, row] of more) {
    const before = all.get(name);
    all.set(name, before ? largerRow(before, row) : row);
  }
  return all;
}

/** A provider with what a file adds to this version's lists. The file removes nothing, and no figure gets smaller. */
export function withKnowledge(provider: Provider, { providers, source, id }: Knowledge): Provider {
  const knowledge = `${source}:${id}`;
  const added = providers.get(provider.id);
  if (!added) return { ...provider, knowledge };
  const { places, betas, models, freeUsage } = added;
  const { rules } = provider;
  const betasOf = (wanted: 'harmless' | 'refused') =>
    [...betas].flatMap(([name, effect]) => (effect === wanted ? [name] : []));
  return {
    ...provider,
    knowledge,
    rules: {
      ...rules,
      declared: strictestPlaces([rules.declared, places]),
      harmlessBetas: [...(rules.harmlessBetas ?? []), ...betasOf('harmless')],
      refusedBetas: betasOf('refused'),
      freeUsage: new Set([...(rules.freeUsage ?? []), ...freeUsage]),
    },
    addedModels: Object.fromEntries(models),
  };
}
