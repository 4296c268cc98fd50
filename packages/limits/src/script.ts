import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Places, type RedisClient, sendScript } from './redis.ts';
import { type Kinds, luaReply, type Reply } from './reply.ts';

type Value = string | number | undefined;
/** A part of the input. Absent if the script declares no names of this kind. */
type Part<P extends string, N extends string, T> = [N] extends [never] ? unknown : { readonly [K in P]: T };

/** The input of a script, by name. An undefined argument is '' in Lua. */
type Input<K extends string, A extends string, EK extends string, EA extends string> = Part<
  'keys',
  K,
  Readonly<Record<K, string>>
> &
  Part<'args', A, Readonly<Record<A, Value>>> &
  Part<'each', EK | EA, readonly (Readonly<Record<EK, string>> & Readonly<Record<EA, Value>>)[]>;

type Loose = {
  readonly keys?: Readonly<Record<string, string>>;
  readonly args?: Readonly<Record<string, Value>>;
  readonly each?: readonly Readonly<Record<string, Value>>[];
};

/** A Lua script: one round trip, all keys in one partition. */
export type Script<I, T> = {
  /** Sends the script's SHA-1, and its text only to a server that has not seen it. Throws what ioredis throws. */
  readonly run: (redis: RedisClient, input: I) => Promise<T>;
  readonly text: string;
  /** The arguments of EVAL and EVALSHA after the script: the number of keys, KEYS, ARGV. */
  readonly place: (input: I) => Places;
};

/** Declares `lua/<name>.lua`: the names of its keys, of its arguments, and of a list's items, and what it returns. */
export function script<
  T,
  const K extends string = never,
  const A extends string = never,
  const EK extends string = never,
  const EA extends string = never,
>(
  name: string,
  declared: {
    readonly keys?: readonly K[];
    readonly args?: readonly A[];
    readonly each?: { readonly keys?: readonly EK[]; readonly args?: readonly EA[] };
    readonly reply: Reply<T>;
  },
): Script<Input<K, A, EK, EA>, T> {
  const { keys = [], args = [], each = {}, reply } = declared;
  const names = { keys, args, eachKeys: each.keys ?? [], eachArgs: each.args ?? [] };
  const text = compileScript(name, names, reply.kinds);
  const sha = createHash('sha1').update(text).digest('hex');
  const place = (input: Loose) => placeIn(names, input);
  const sent = { sha, text, read: reply.read };
  const run = (redis: RedisClient, input: Loose) => sendScript(redis, sent, place(input));
  return { run, text, place } as Script<Input<K, A, EK, EA>, T>;
}

function placeIn(names: Names, { keys = {}, args = {}, each = [] }: Loose): Places {
  const keyCount = names.keys.length + names.eachKeys.length * each.length;
  const places: Value[] = new Array(1 + keyCount + names.args.length + names.eachArgs.length * each.length);
  let at = 0;
  places[at++] = keyCount;
  for (const key of names.keys) places[at++] = keys[key] ?? '';
  for (const item of each) for (const key of names.eachKeys) places[at++] = item[key] ?? '';
  for (const arg of names.args) places[at++] = args[arg] ?? '';
  for (const item of each) for (const arg of names.eachArgs) places[at++] = item[arg] ?? '';
  return places as Places;
}

/** The names of a script's keys and arguments: camelCase here, snake_case in its Lua. */
export type Names = {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Each item of the list that follows has these keys and arguments. */
  readonly eachKeys: readonly string[];
  readonly eachArgs: readonly string[];
};

/**
 * Reads `lua/<name>.lua`, puts the files of `lua/shared` that it includes before it, and replaces names by positions: `key.grant` by
 * `KEYS[2]`, `arg.uses` by `ARGV[3]`, `each.budget[i]` by `KEYS[5 + i]`, `#each` by the length of the list, `reply.held{limit = n}` by the
 * Lua of `luaReply`. Names therefore cost nothing when the script runs. The first line is kept, because Redis reads there when it must
 * refuse the script (Redis manual, "Script flags").
 * @throws when the script uses a name that is not declared, or does not use one that is
 */
export function compileScript(name: string, names: Names, kinds: Kinds = {}): string {
  const [, flags, body] = /^(#!lua[^\n]*\n)(.*)$/s.exec(readLua(name)) ?? [];
  if (flags === undefined || body === undefined) throw new Error(`${name}.lua does not begin with #!lua`);
  const included = /^-- include: (.+)$/m.exec(body)?.[1]?.split(', ') ?? [];
  const places = new Map(placesOf(names));
  const idle = new Set([...places.keys(), ...Object.keys(kinds).map((kind) => `reply.${kind}`)]);
  const place = (word: string, index: string) => {
    const found = places.get(word);
    if (!found) throw new Error(`${name}.lua uses ${word}, which is not declared`);
    idle.delete(word);
    return found(index);
  };
  const returned = (_: string, kind: string, values = '') => {
    const fields = kinds[kind];
    if (!fields) throw new Error(`${name}.lua returns reply.${kind}, which is not declared`);
    idle.delete(`reply.${kind}`);
    return luaReply(kinds, kind, writeValues(`${name}.lua: reply.${kind}`, fields, values));
  };
  const own = withoutComments(body)
    .replace(/\breply\.(\w+)(?:\{([^}]*)\})?/g, returned)
    .replace(/\b(each\.\w+)\[(\w+)\]/g, (_, word: string, index: string) => place(word, index))
    .replace(/#each\b|\b(?:key|arg|each)\.\w+/g, (word) => place(word, ''));
  if (idle.size > 0) throw new Error(`${name}.lua does not use ${[...idle].join(', ')}`);
  // On one line, so that line numbers in Redis' errors match the file.
  const before = included.map((file) => withoutComments(readLua(`shared/${file}`)).replace(/\s+/g, ' '));
  return [flags, ...before, own].join('');
}

type Place = (index: string) => string;

function* placesOf({ keys, args, eachKeys, eachArgs }: Names): Generator<[string, Place]> {
  for (const [i, key] of keys.entries()) yield [`key.${snake(key)}`, () => `KEYS[${i + 1}]`];
  for (const [i, arg] of args.entries()) yield [`arg.${snake(arg)}`, () => `ARGV[${i + 1}]`];
  yield* columns('KEYS', keys.length, eachKeys);
  yield* columns('ARGV', args.length, eachArgs);
  if (eachKeys.length > 0) yield ['#each', () => length('KEYS', keys.length, eachKeys.length)];
  else if (eachArgs.length > 0) yield ['#each', () => length('ARGV', args.length, eachArgs.length)];
}

/** The items lie one after another, and Lua counts them from 1. */
function* columns(list: string, before: number, names: readonly string[]): Generator<[string, Place]> {
  const width = names.length;
  const times = width === 1 ? '' : `${width} * `;
  for (const [i, name] of names.entries())
    yield [`each.${snake(name)}`, (index) => `${list}[${before + i + 1 - width} + ${times}${index}]`];
}

const length = (list: string, before: number, width: number) =>
  width === 1 ? `(#${list} - ${before})` : `((#${list} - ${before}) / ${width})`;

/** The Lua values of `name = value, …`, in the order declared. */
function writeValues(where: string, fields: Kinds[string], values: string): string[] {
  const given = new Map<string, string>();
  for (const pair of values.split(',').filter((text) => text.trim() !== '')) {
    const [, name, value] = /^\s*(\w+) = (.+?)\s*$/.exec(pair) ?? [];
    if (!name || !value) throw new Error(`${where} has ${pair}, which is not a name = value without a comma`);
    given.set(name, value);
  }
  const declared = Object.entries(fields ?? {}).map(([name, { lua }]) => {
    const value = given.get(snake(name));
    if (value === undefined) throw new Error(`${where} lacks ${snake(name)}`);
    return lua(value);
  });
  if (declared.length < given.size) throw new Error(`${where} has values that are not declared`);
  return declared;
}

const readLua = (name: string) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
const withoutComments = (lua: string) => lua.replace(/--.*$/gm, '');
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
