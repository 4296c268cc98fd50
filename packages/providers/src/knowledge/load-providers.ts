import { readNamedFile } from '@presign/service';
import * as z from 'zod';
import { answerHeaderProblem } from '../answers/answer-headers.ts';
import { isCostlyBeta } from '../bounds/betas.ts';
import { HARMLESS_NAME, PLACE_LENGTH } from '../bounds/beyond-lists.ts';
import { type Declared, strictestPlaces } from '../bounds/declared.ts';
import { type CacheWrites, FEE_UNITS, type ModelPrice, TOKEN_KINDS } from '../facts/rates.ts';
import { isJsonObject } from '../json.ts';
import { printable } from '../kept/listed.ts';
import { checkCallPath } from '../path.ts';
import type { ModelRow, ModelRows, Provider } from '../provider.ts';
import { isCostlyCount } from '../usage/costly-counts.ts';
import { BETA_NAME, USAGE_NAME } from '../usage/names.ts';
import { strictest, type VendorRules } from '../vendor-rules.ts';
import { BUILT_IN_PROVIDERS } from '../vendors.ts';
import { BUNDLED_KNOWLEDGE, type Knowledge, withKnowledge } from './knowledge.ts';
import { DATE, placeEntry, SOURCE, whyOf } from './place.ts';

/** An error in PROVIDERS_FILE. Its message is one line that names the entry and the field, and shows an example. */
export class ProvidersFileError extends Error {
  constructor(problem: string) {
    super(`PROVIDERS_FILE: ${printable(problem).slice(0, PROBLEM_MAX)}; for example ${EXAMPLE}`);
    this.name = 'ProvidersFileError';
  }
}

/**
 * The providers a service knows, by id: the built-in ones with the additions of a knowledge file. An operator's file changes them and adds
 * others.
 * @param fileText contents of PROVIDERS_FILE; undefined if there is none.
 * @throws ProvidersFileError at the first entry that cannot be used.
 */
export function loadProviders(
  fileText: string | undefined,
  knowledge: Knowledge = BUNDLED_KNOWLEDGE,
): ReadonlyMap<string, Provider> {
  const known = new Map(
    [...BUILT_IN_PROVIDERS].map(([id, provider]) => [id, withKnowledge(provider, knowledge)]),
  );
  if (fileText === undefined) return known;
  const providers = new Map(known);
  for (const [id, entry] of Object.entries(parseFile(fileText))) {
    if (!PROVIDER_ID.test(id)) {
      throw new ProvidersFileError(
        `${JSON.stringify(id)} is not a name: expected a-z, 0-9 and -, at most 64 characters`,
      );
    }
    providers.set(id, providerOf(known, id, parseEntry(id, entry)));
  }
  return providers;
}

/**
 * The text of `PROVIDERS_FILE`, which is checked here.
 * @param path undefined if there is no such file
 * @throws VariableError or ProvidersFileError
 */
export function readProvidersFile(path: string | undefined): string | undefined {
  const text = path === undefined ? undefined : readNamedFile('PROVIDERS_FILE', path);
  loadProviders(text);
  return text;
}

const EXAMPLE =
  '{"acme": {"extends": "openai", "base_url": "https://api.acme.example", "pricing": {"model-x": {"input": 150000, "output": 600000}}}}';
const PROVIDER_ID = /^[a-z0-9][a-z0-9-]{0,63}$/;
/** The names of all providers fit. */
const PROBLEM_MAX = 1_000;

function parseFile(text: string): { [id: string]: unknown } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's own message quotes the file, which may contain secrets that logs must not contain.
    throw new ProvidersFileError('is not valid JSON');
  }
  if (!isJsonObject(parsed)) throw new ProvidersFileError('expected an object of providers by name');
  return parsed;
}

const baseUrl = z.string().transform((text, context) => {
  const url = /[\s\\?#]/.test(text) ? null : parsedUrl(text);
  const usable =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    /^https?:\/\/[^/]/i.test(text) &&
    url.username + url.password === '' &&
    (url.pathname === '/' || checkCallPath(url.pathname) === undefined);
  if (!usable) {
    context.addIssue('expected an http or https address without user, query or fragment');
    return z.NEVER;
  }
  return url.origin + url.pathname.replace(/\/$/, '');
});

/** `URL.parse` without needing Node 22. */
const parsedUrl = (text: string): URL | null => (URL.canParse(text) ? new URL(text) : null);

const rate = z
  .int('expected a whole number of microdollars, per million tokens or for each of another unit')
  .min(0, 'expected at least 0');

const modelPrice = z
  .strictObject(Object.fromEntries([...TOKEN_KINDS, ...FEE_UNITS].map((unit) => [unit, rate.optional()])))
  .refine((price) => Object.keys(price).length > 0, 'expected at least one rate')
  .transform((price): ModelPrice => price as ModelPrice);

/** No server needs more names of headers. */
const ANSWER_HEADERS_MAX = 64;

const answerHeader = z.string().transform((name, context) => {
  const problem = answerHeaderProblem(name.toLowerCase());
  if (problem === undefined) return name.toLowerCase();
  context.addIssue(problem);
  return z.NEVER;
});

/** No two versions differ by more names. */
const HARMLESS_MAX = 32;

/** No resource needs more deployments. */
const DEPLOYMENTS_MAX = 1_000;

const tokens = z.int('expected a whole number of tokens').min(1, 'expected at least 1');

/** The window of a model, and the most that it writes. A model is assumed to think unless it is known not to. */
const modelWindow = z
  .strictObject({ window: tokens, output: tokens, thinks: z.boolean().default(true) })
  .refine(({ window, output }) => output <= window, {
    path: ['output'],
    message: 'expected at most the window, which has room for both input and output',
  });

const namedPlace = z
  .string()
  .max(PLACE_LENGTH, `expected at most ${PLACE_LENGTH} characters`)
  .regex(
    HARMLESS_NAME,
    'expected the name of a field or of a kind, such as "messages[].note" or "input[].type=x"',
  );

const entrySchema = z.strictObject({
  deployments: z
    .record(z.string().min(1), z.string().min(1))
    .transform((models) => new Map(Object.entries(models)))
    .refine(({ size }) => size <= DEPLOYMENTS_MAX, `expected at most ${DEPLOYMENTS_MAX} names`)
    .optional(),
  extends: z.union([z.string(), z.array(z.string()).min(1)]).optional(),
  base_url: baseUrl.optional(),
  token_url: baseUrl.optional(),
  free_usage: z
    .array(
      z
        .string()
        .regex(USAGE_NAME, 'expected the name of a count or a part, such as "energy_wh" or "cost.*"')
        .refine((name) => !isCostlyCount(name), 'is known to cost money'),
    )
    .optional(),
  harmless_fields: z.array(namedPlace).max(HARMLESS_MAX, `expected at most ${HARMLESS_MAX} names`).optional(),
  fields: z
    .record(namedPlace, placeEntry({ source: SOURCE.optional(), date: DATE.optional() }))
    .transform((places) => new Map(Object.entries(places)))
    .refine(({ size }) => size <= HARMLESS_MAX, `expected at most ${HARMLESS_MAX} names`)
    .optional(),
  harmless_betas: z
    .array(
      z
        .string()
        .regex(BETA_NAME, 'expected the name of a beta, such as "new-thing-2026-12-01"')
        .refine((name) => !isCostlyBeta(name), 'is known to change a price'),
    )
    .max(HARMLESS_MAX, `expected at most ${HARMLESS_MAX} names`)
    .optional(),
  pricing: z
    .record(z.string().min(1), modelPrice)
    .transform((prices) => new Map(Object.entries(prices)))
    .optional(),
  context_windows: z
    .record(z.string().min(1), z.union([tokens, modelWindow]))
    .transform((windows) => new Map(Object.entries(windows)))
    .optional(),
  answer_headers: z
    .array(answerHeader)
    .max(ANSWER_HEADERS_MAX, `expected at most ${ANSWER_HEADERS_MAX} names`)
    .optional(),
});

function parseEntry(id: string, entry: unknown): z.infer<typeof entrySchema> {
  const read = entrySchema.safeParse(entry);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const field = [id, ...(issue?.path ?? [])].map(String).join('.');
  if (issue?.code === 'unrecognized_keys') {
    throw new ProvidersFileError(`${field}.${issue.keys[0]} is not known`);
  }
  throw new ProvidersFileError(`${field}: ${whyOf(issue) ?? 'is malformed'}`);
}

function providerOf(
  known: ReadonlyMap<string, Provider>,
  id: string,
  entry: z.infer<typeof entrySchema>,
): Provider {
  const builtIn = known.get(id);
  if (builtIn !== undefined && entry.extends !== undefined) {
    throw new ProvidersFileError(`${id}.extends: ${id} is built in and extends nothing`);
  }
  const base = builtIn ?? extended(known, id, entry.extends);
  if (builtIn === undefined && entry.base_url === undefined) {
    throw new ProvidersFileError(`${id}.base_url is missing: a new provider needs its own`);
  }
  const { credential } = base;
  if (entry.token_url !== undefined && credential.scheme !== 'service account') {
    throw new ProvidersFileError(`${id}.token_url: only a provider with service accounts has one`);
  }
  if (entry.deployments && !base.namesDeployments) {
    throw new ProvidersFileError(`${id}.deployments: only azure-openai and what extends it has deployments`);
  }
  if (entry.context_windows && builtIn !== undefined) {
    throw new ProvidersFileError(`${id}.context_windows: ${id} is built in and has its own`);
  }
  return {
    ...(entry.base_url === undefined ? base : movedTo(entry.base_url, base)),
    ...(credential.scheme === 'service account' && {
      credential: { ...credential, tokenUrl: entry.token_url ?? credential.tokenUrl },
    }),
    id,
    baseUrl: entry.base_url ?? base.baseUrl,
    rules: withDeclared(base.rules, entry),
    ...(entry.pricing && { pricing: entry.pricing }),
    ...(entry.context_windows && { models: rowsWith(entry.context_windows) }),
    ...(entry.deployments && {
      deployments: entry.deployments,
      modelRow: (model: string) => entry.deployments?.get(model) ?? model,
    }),
    answerHeaders: [...(base.answerHeaders ?? []), ...(entry.answer_headers ?? [])],
  };
}

/** If only the window is known, a model may write as much as fits, and may think. */
const rowsWith = (windows: ReadonlyMap<string, number | z.infer<typeof modelWindow>>): ModelRows =>
  Object.fromEntries(
    [...windows].map(([model, row]): [string, ModelRow] => [
      model,
      typeof row === 'number'
        ? [row, undefined, 'thinks']
        : [row.window, row.output, row.thinks ? 'thinks' : undefined],
    ]),
  );

/** A provider at an address of the operator. That server may not behave as the vendor's own servers are known to. */
function movedTo(address: string, { originIn: _, isOwnHost, ...fixed }: Provider): Provider {
  const isOwn = fixed.baseUrl !== undefined && new URL(address).origin === new URL(fixed.baseUrl).origin;
  return { ...fixed, ...(isOwn && isOwnHost && { isOwnHost }) };
}

const withDeclared = (
  rules: VendorRules,
  { free_usage, fields, harmless_fields, harmless_betas }: z.infer<typeof entrySchema>,
): VendorRules => ({
  ...rules,
  ...(free_usage && { freeUsage: new Set([...(rules.freeUsage ?? []), ...free_usage]) }),
  ...((fields ?? harmless_fields) && {
    declared: strictestPlaces([rules.declared, harmlessPlaces(harmless_fields), fields]),
  }),
  ...(harmless_betas && { harmlessBetas: [...(rules.harmlessBetas ?? []), ...harmless_betas] }),
});

const harmlessPlaces = (names: readonly string[] = []) =>
  new Map(names.map((name): [string, Declared] => [name, { effect: 'harmless' }]));

/** A server that speaks the APIs of several providers extends them all. The first decides its address and its key. */
function extended(
  known: ReadonlyMap<string, Provider>,
  id: string,
  names: string | readonly string[] | undefined,
): Provider {
  const all = [...known.keys()].join(', ');
  if (names === undefined) throw new ProvidersFileError(`${id}.extends is missing: expected one of ${all}`);
  const bases = [names].flat().flatMap((name) => known.get(name) ?? []);
  const [first] = bases;
  if (first === undefined || bases.length < [names].flat().length) {
    throw new ProvidersFileError(`${id}.extends: expected one of ${all}`);
  }
  // It has the API and the rules of the providers that it extends. Its prices, its models and its way to count are its own. It may bill the
  // errors that those providers bill.
  const {
    priceList: _,
    traceName: _traced,
    liteLlm: _names,
    liteLlmModels: _taken,
    listedModels: _listed,
    models: __,
    addedModels: _added,
    resells: ___,
    ...described
  } = first;
  const { makerNames: ____, encodings: _____, isOwnHost: ______, unitPrices: _______, ...api } = described;
  const billed = bases.flatMap(({ refusals }) =>
    refusals === 'undocumented' ? [] : refusals.filter(({ billing }) => billing === 'billed'),
  );
  const refusals = billed.length === 0 ? 'undocumented' : billed;
  const rules = bases.length === 1 ? first.rules : strictest(bases.map((base) => base.rules));
  return {
    ...api,
    routes: bases.flatMap(({ routes }) => routes),
    free: bases.flatMap(({ free = [] }) => free),
    outside: bases.flatMap(({ outside = [] }) => outside),
    answerHeaders: bases.flatMap(({ answerHeaders = [] }) => answerHeaders),
    slashedIds: bases.flatMap(({ slashedIds = [] }) => slashedIds),
    ...(bases.length > 1 && {
      cacheWrites: (model: string) => dearestWrites(bases.flatMap((base) => base.cacheWrites?.(model) ?? [])),
    }),
    rules,
    refusals,
  };
}

/** The server may serve the models of any of them. */
const dearestWrites = (all: readonly CacheWrites[]): CacheWrites | undefined =>
  all.length === 0
    ? undefined
    : {
        short: Math.max(...all.map(({ short }) => short)),
        hour: Math.max(...all.map(({ hour }) => hour)),
      };
