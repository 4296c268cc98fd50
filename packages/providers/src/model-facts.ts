import { anthropic } from './model-facts/anthropic.ts';
import { cohere } from './model-facts/cohere.ts';
import { deepseek } from './model-facts/deepseek.ts';
import { google } from './model-facts/google.ts';
import { groq } from './model-facts/groq.ts';
import { mistral } from './model-facts/mistral.ts';
import { openai } from './model-facts/openai.ts';
import { perplexity } from './model-facts/perplexity.ts';
import type { Row, Rows } from './model-facts/rows.ts';
import { together } from './model-facts/together.ts';
import { xai } from './model-facts/xai.ts';
import type { ModelFacts } from './spend.ts';

/**
 * What is known of a provider's model: of the context window and most output, in tokens, undefined if not known.
 * A model that is not known is taken for one that reasons, since more is held for those.
 * @param providerId our name of the provider, or the price list's (`Provider.priceList`)
 */
export function modelFacts(providerId: string, model: string): ModelFacts {
  const [contextWindow, maxOutput, thinks] = rowOf(providerId, model) ?? UNKNOWN;
  return { contextWindow, maxOutput, reasoning: thinks === 'thinks' };
}

const UNKNOWN = [undefined, undefined, 'thinks'] as const;

/** Deployments of Azure are often named after their model; OpenRouter's names begin with the model's maker. */
const ROWS: ReadonlyMap<string, Rows> = new Map([
  ['openai', openai],
  ['azure-openai', openai],
  ['azure', openai],
  ['anthropic', anthropic],
  ['google', google],
  ['cohere', cohere],
  ['groq', groq],
  ['mistral', mistral],
  ['deepseek', deepseek],
  ['xai', xai],
  ['x-ai', xai],
  ['perplexity', perplexity],
  ['together', together],
]);

/** Makers of models, as those who resell them name them. */
const MAKERS: ReadonlyMap<string, Rows> = new Map([
  ['openai', openai],
  ['anthropic', anthropic],
  ['google', google],
  ['cohere', cohere],
  ['mistralai', mistral],
  ['deepseek', deepseek],
  ['x-ai', xai],
  ['xai', xai],
  ['perplexity', perplexity],
]);

/** They sell some models with a wider window than their makers do, so that one is not known from the maker's. */
const RESELLERS: ReadonlySet<string> = new Set(['openrouter', 'perplexity']);

function rowOf(providerId: string, model: string): Row | undefined {
  const own = find(ROWS.get(providerId), model);
  if (own !== undefined || !RESELLERS.has(providerId)) return own;
  const [maker = '', ...name] = model.split('/');
  const made = find(MAKERS.get(maker), asMade(name.join('/')));
  return made && [undefined, made[1], made[2]];
}

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

/** Finds the longest name that the model's begins with, if only suffixes follow. */
function find(rows: Rows | undefined, model: string): Row | undefined {
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
