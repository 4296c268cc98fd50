import { LRUCache } from 'lru-cache';
import type { ErrorShape } from './dialect.ts';
import { dialectOf } from './dialect-of.ts';
import { CLAUDE } from './facts/anthropic.ts';
import type { Encoding } from './facts/fact.ts';
import { endsInSuffixes, NAME_MAX_CHARS, undated } from './model-names.ts';
import { openaiErrors } from './openai/errors.ts';
import type { ModelRow, ModelRows, Provider } from './provider.ts';
import type { ModelFacts } from './spend.ts';
import { anthropic } from './vendors/anthropic.ts';
import { cerebras } from './vendors/cerebras.ts';
import { azureOpenai } from './vendors/clouds/azure-openai.ts';
import { bedrock } from './vendors/clouds/bedrock.ts';
import { vertex } from './vendors/clouds/vertex.ts';
import { cohere } from './vendors/cohere.ts';
import { deepseek } from './vendors/deepseek.ts';
import { fireworks } from './vendors/fireworks.ts';
import { google } from './vendors/google.ts';
import { groq } from './vendors/groq.ts';
import { mistral } from './vendors/mistral.ts';
import { nebius } from './vendors/nebius.ts';
import { openai } from './vendors/openai.ts';
import { openrouter } from './vendors/openrouter.ts';
import { perplexity } from './vendors/perplexity.ts';
import { together } from './vendors/together.ts';
import { xai } from './vendors/xai.ts';

/** Every provider known without an operator's file, by id. */
export const BUILT_IN_PROVIDERS: ReadonlyMap<string, Provider> = new Map(
  [
    openai,
    anthropic,
    google,
    cohere,
    groq,
    mistral,
    deepseek,
    xai,
    together,
    fireworks,
    openrouter,
    perplexity,
    cerebras,
    nebius,
    azureOpenai,
    bedrock,
    vertex,
  ].map((provider) => [provider.id, provider]),
);

/**
 * Context window and maximum output of a provider's model in tokens, undefined if not known. An unknown model is
 * assumed to reason, because models that reason have larger holds.
 */
export function modelFacts(
  provider: Pick<Provider, 'models' | 'addedModels' | 'modelRow' | 'resells'>,
  model: string,
): ModelFacts {
  const name = provider.modelRow?.(model) ?? model;
  const [contextWindow, maxOutput, thinks] = rowOf(provider, name) ?? UNKNOWN;
  return { contextWindow, maxOutput, reasoning: thinks === 'thinks' };
}

/** The encoding of a provider's model. Undefined if its text cannot be counted. */
export const encodingOf = ({ encodings }: Pick<Provider, 'encodings'>, model: string): Encoding | undefined =>
  encodings && (encodings.get(model) ?? encodings.get(undated(model)));

const UNKNOWN = [undefined, undefined, 'thinks'] as const;

/**
 * The row of a model: of this version's lists, and of those that a knowledge file adds. No longer name in such a file takes the place of a
 * row that this version has (`gpt-4o-2024-11-20`), so that each figure is the larger one.
 */
function rowOf(
  { models, addedModels, resells }: Pick<Provider, 'models' | 'addedModels' | 'resells'>,
  model: string,
): ModelRow | undefined {
  const added = findRow(addedModels, model);
  const known = findRow(models, model) ?? (resells ? madeRow(model, added?.[0]) : undefined);
  return added && known ? largerRow(known, added) : (known ?? added);
}

/**
 * A reseller's model that it does not list has its maker's facts, except for the window: resellers serve some models
 * with a wider window than their makers.
 */
function madeRow(model: string, window: number | undefined): ModelRow | undefined {
  const [maker = '', ...name] = model.split('/');
  const made = findRow(modelsOfMaker(maker), asMade(name.join('/')));
  return made && [window, made[1], made[2]];
}

/** The larger of each figure of two rows of one model. */
export const largerRow = (one: ModelRow, other: ModelRow): ModelRow => [
  larger(one[0], other[0]),
  larger(one[1], other[1]),
  one[2] ?? other[2],
];

/** A figure that is not known counts as larger than any other. */
const larger = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? undefined : Math.max(one, other);

const modelsOfMaker = (maker: string): ModelRows | undefined =>
  [...BUILT_IN_PROVIDERS.values()].find(({ makerNames = [] }) => makerNames.includes(maker))?.models;

/** `claude-sonnet-4.5` → `claude-sonnet-4-5`, as Anthropic writes it. */
const asMade = (name: string): string => (CLAUDE.matching.test(name) ? name.replaceAll('.', '-') : name);

function findRow(rows: ModelRows | undefined, model: string): ModelRow | undefined {
  if (!rows) return undefined;
  if (Object.hasOwn(rows, model)) return rows[model];
  if (model.length > NAME_MAX_CHARS) return undefined;
  const known = foundRows.get(rows) ?? new LRUCache({ max: 500 });
  foundRows.set(rows, known);
  let found = known.get(model);
  if (!found) {
    found = { row: longestRow(rows, model) };
    known.set(model, found);
  }
  return found.row;
}

/** The rows that were found for names with suffixes: each call reads them several times. */
const foundRows = new WeakMap<ModelRows, LRUCache<string, { readonly row: ModelRow | undefined }>>();

/** The row with the longest name that begins the model's name, if only suffixes follow it. */
function longestRow(rows: ModelRows, model: string): ModelRow | undefined {
  const names = Object.keys(rows).filter((name) => model.startsWith(name));
  const longest = names
    .toSorted((a, b) => b.length - a.length)
    .find((name) => endsInSuffixes(model, name.length));
  return longest === undefined ? undefined : rows[longest];
}

/**
 * The form that errors have at a path, so that the holder's SDK can read a refusal of the gateway.
 * @param provider undefined if the token does not name one. The path then decides alone.
 * @param issuedFor a path for which the URL was issued. Its form counts where the provider has no such path.
 */
export function errorShapeOf(provider: Provider | undefined, path: string, issuedFor?: string): ErrorShape {
  const speaker = provider ?? [...BUILT_IN_PROVIDERS.values()].find((each) => dialectOf(each, path));
  const dialect = speaker && dialectOf(speaker, path);
  if (dialect) return dialect.errors ?? openaiErrors;
  const issued = provider && issuedFor !== undefined ? dialectOf(provider, issuedFor) : undefined;
  return speaker?.errors?.(path) ?? issued?.errors ?? openaiErrors;
}
