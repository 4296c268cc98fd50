import type { ModelRow, ModelRows, Provider } from './provider.ts';
import type { ModelFacts } from './spend.ts';
import { BUILT_IN_PROVIDERS } from './vendors.ts';

/**
 * What is known of a provider's model: context window and most output in tokens, undefined if not known.
 * A model that is not known is assumed to reason, because more is held for models that reason.
 */
export function modelFacts(provider: Pick<Provider, 'models' | 'resells'>, model: string): ModelFacts {
  const [contextWindow, maxOutput, thinks] = rowOf(provider, model) ?? UNKNOWN;
  return { contextWindow, maxOutput, reasoning: thinks === 'thinks' };
}

const UNKNOWN = [undefined, undefined, 'thinks'] as const;

/**
 * A reseller's model, if it does not list it, is its maker's. The window is not: resellers have some models with a
 * wider window than their makers.
 */
function rowOf(
  { models, resells }: Pick<Provider, 'models' | 'resells'>,
  model: string,
): ModelRow | undefined {
  const own = findRow(models, model);
  if (own !== undefined || !resells) return own;
  const [maker = '', ...name] = model.split('/');
  const made = findRow(modelsOfMaker(maker), asMade(name.join('/')));
  return made && [undefined, made[1], made[2]];
}

const modelsOfMaker = (maker: string): ModelRows | undefined =>
  [...BUILT_IN_PROVIDERS.values()].find(({ makerNames = [] }) => makerNames.includes(maker))?.models;

/** `claude-sonnet-4.5` → `claude-sonnet-4-5`, as Anthropic writes it. */
const asMade = (name: string): string => (name.startsWith('claude-') ? name.replaceAll('.', '-') : name);

/** A date, a build, a stage or a version of an endpoint may follow a name; it stays the same model. */
const SUFFIXES = [
  /-(?:latest|preview|exp|beta)/y,
  /[-@]\d{3,8}(?!\d)/y,
  /-\d{4}-\d{2}-\d{2}(?!\d)/y,
  /-\d{2}-\d{2,4}(?!\d)/y,
  /:free/y,
];

/** Longer names belong to no model. */
const NAME_MAX_CHARS = 255;

/** The row with the longest name that the model's name begins with, if only suffixes follow. */
function findRow(rows: ModelRows | undefined, model: string): ModelRow | undefined {
  if (model.length > NAME_MAX_CHARS) return undefined;
  const names = Object.keys(rows ?? {}).filter((name) => model.startsWith(name));
  const longest = names
    .toSorted((a, b) => b.length - a.length)
    .find((name) => endsInSuffixes(model, name.length));
  return longest === undefined ? undefined : rows?.[longest];
}

/**
 * Whether a text is suffixes alone from an index on. Each index is looked at once, whatever ways lead to it: one
 * expression for all suffixes would try every way to part `-1234-12-12-1234-12-12…`.
 */
function endsInSuffixes(text: string, start: number): boolean {
  const reached = new Set([start]);
  for (const at of reached) {
    for (const suffix of SUFFIXES) {
      suffix.lastIndex = at;
      if (suffix.test(text)) reached.add(suffix.lastIndex);
    }
  }
  return reached.has(text.length);
}
