import type { Entry, Group } from '../facts/fact.ts';
import { type AllowList, only, type Rule } from './allow-list.ts';

/** A function elsewhere that judges a field while it walks the body for other reasons. The list of fields then passes the field. */
type Apart = { readonly apart: (...args: never[]) => unknown };

/** The name of the function that judges a field separately. */
export const apart = (judge: Apart['apart']): Apart => ({ apart: judge });

/** The names of the judgements in a group. */
type NamesIn<G extends Group> = Extract<
  G['entries'][keyof G['entries']],
  { readonly effect: 'judged' }
>['by'];

/** The judgements that a group names. A group that names none needs none. */
type Judgements<G extends Group, T> = [NamesIn<G>] extends [never]
  ? []
  : [judgements: Readonly<Record<NamesIn<G>, T>>];

/**
 * Compiles a group into rules by field or kind, once for all calls.
 * @throws Error if no judgement has the name that an entry says
 */
export const compileGroup = <G extends Group>(
  group: G,
  ...[judgements]: Judgements<G, Rule | Apart>
): AllowList =>
  compile<Rule>(group, plainRule, (name) => {
    const rule = (judgements as Readonly<Record<string, Rule | Apart>> | undefined)?.[name];
    return typeof rule === 'object' && 'apart' in rule ? 'harmless' : rule;
  });

/** Compiles a group into bounds of its entries. `plain` creates a bound from an effect, and `judgements` has one for each name. */
export const compileWith = <G extends Group, T>(
  group: G,
  plain: (entry: PlainEntry) => T,
  judgements: Readonly<Record<NamesIn<G>, NoInfer<T>>>,
): ReadonlyMap<string, T> =>
  compile(group, plain, (name) => (judgements as Readonly<Record<string, T>>)[name]);

type PlainEntry = Exclude<Entry, { readonly effect: 'judged' }>;

function compile<T>(
  { at, entries }: Group,
  plain: (entry: PlainEntry) => T,
  judged: (name: string) => T | undefined,
): ReadonlyMap<string, T> {
  return new Map(
    Object.entries(entries).map(([name, entry]): [string, T] => {
      if (entry.effect !== 'judged') return [name, plain(entry)];
      const found = judged(entry.by);
      if (found === undefined) throw new Error(`no judgement "${entry.by}" for ${name} at "${at}"`);
      return [name, found];
    }),
  );
}

function plainRule(entry: PlainEntry): Rule {
  if (entry.effect === 'refused') return { unbounded: entry.reason };
  if (entry.effect === 'whole window' || entry.values === undefined)
    return entry.effect === 'whole window' ? 'whole window' : 'harmless';
  return only(entry.reason, ...entry.values);
}
