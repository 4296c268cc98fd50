// Prints the table of Redis keys that packages/limits/README.md has: from the comments of packages/limits/src/keys.ts, and from what
// the scripts do with each key. It fails if a script uses a field that the comment does not name, or the other way round.
// Run: npx tsx docs/generate-redis-keys.ts --write
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LIMIT_NAMES, limitKind } from '../packages/schema/src/limit-kinds.ts';
import { markdownTable } from './markdown-table.ts';

const LIMITS = new URL('../packages/limits/', import.meta.url);
const README = new URL('README.md', LIMITS);
const TABLE = /(<!-- docs\/generate-redis-keys\.ts -->\n\n)(.*?)(\n\n<!-- end -->)/s;

/** Keys that scripts call by another name. */
const IN_SCRIPTS: Readonly<Record<string, string>> = { charge: 'hold', rate: 'rateLimit' };
const TYPES = { H: 'hash', Z: 'sorted set', X: 'stream' } as const;
/** Limits are written by what TypeScript passes: each has the field of its row in the table of limits. */
const LIMIT_FIELDS = new Set<string>(
  LIMIT_NAMES.map((name) => limitKind(name).field).flatMap((field) => [
    field,
    `${field}_level`,
    `${field}_at`,
  ]),
);
/** Words in the comments that are no field. */
const NO_FIELD = new Set(['field', 'load', 'config', 'seeder', 'done']);

/** `key.grant`, `each.budget[i]`, or the argument `budget` of a shared function. */
const CALL =
  /redis\.call\(\s*'(\w+)',\s*(?:(?:key|each)\.(\w+)(?:\[\w+\])?|(budget))\b((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)/g;

type Used = {
  readonly types: Set<string>;
  readonly fields: Set<string>;
  /** All texts in the scripts: a list may hold fields before a command takes them. */
  readonly texts: Set<string>;
  readonly scripts: Set<string>;
};
const none = (): Used => ({ types: new Set(), fields: new Set(), texts: new Set(), scripts: new Set() });

const table = markdownTable(['Key', 'Type', 'Holds', 'Lasts', 'Scripts'], rows());
if (process.argv.includes('--write')) {
  const readme = readFileSync(README, 'utf8');
  if (!TABLE.test(readme)) throw new Error('the README has no place for the table');
  writeFileSync(
    README,
    readme.replace(TABLE, (_, before, _old, after) => `${before}${table}${after}`),
  );
} else process.stdout.write(`${table}\n`);

function rows(): string[][] {
  const used = usedByScripts();
  const source = readFileSync(new URL('src/keys.ts', LIMITS), 'utf8');
  const declared = source.matchAll(
    /\/\*\*\n((?: {3}\* .*\n)+?) {3}\* @lasts (.*)\n {3}\*\/\n {2}(\w+): [^'`]*['`]([^'`]+)['`]/g,
  );
  const found = Array.from(declared, ([, comment = '', lasts = '', name = '', form = '']) => {
    const holds = comment
      .replace(/^ {3}\* /gm, '')
      .trim()
      .replaceAll('\n', ' ');
    const { types, fields, texts, scripts } = used.get(name) ?? none();
    if (types.size > 1) throw new Error(`scripts use ${name} as ${[...types].join(' and ')}`);
    if (types.has('hash') || types.has('stream')) checkFields(name, holds, fields, texts);
    used.delete(name);
    const key = `\`${form.replaceAll(/\$\{(\w+)\}/g, (_, part: string) => `<${part.replace(/.*Id$/, 'id')}>`)}\``;
    const type = [...types][0] ?? 'string';
    return [
      key,
      type,
      holds,
      lasts,
      [...scripts]
        .sort()
        .map((each) => `\`${each}\``)
        .join(', '),
    ];
  });
  if (used.size > 0) throw new Error(`keys.ts does not explain ${[...used.keys()].join(', ')}`);
  const all = source.match(/=>\s+inPartition\(/g) ?? [];
  if (found.length < all.length) throw new Error('a key of keys.ts has no comment with @lasts');
  return found;
}

/** @throws when comment and scripts name different fields */
function checkFields(
  name: string,
  holds: string,
  fields: ReadonlySet<string>,
  texts: ReadonlySet<string>,
): void {
  const named = new Set(Array.from(holds.matchAll(/`(\w+)`/g), ([, field = '']) => field));
  const unexplained = [...fields].filter((field) => !named.has(field) && !LIMIT_FIELDS.has(field));
  const unused = [...named].filter((field) => !texts.has(field) && !NO_FIELD.has(field));
  if (unexplained.length > 0)
    throw new Error(`keys.ts does not explain ${unexplained.join(', ')} of ${name}`);
  if (unused.length > 0) throw new Error(`no script uses ${unused.join(', ')} of ${name}`);
}

/** The commands of all scripts, by their key. */
function usedByScripts(): Map<string, Used> {
  const all = new Map<string, Used>();
  const folder = fileURLToPath(new URL('src/lua', LIMITS));
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.lua'))
    .sort()) {
    const lua = readFileSync(`${folder}/${file}`, 'utf8').replace(/--.*$/gm, '');
    for (const { name, command, fields } of callsIn(lua)) {
      const used = all.get(name) ?? none();
      all.set(name, used);
      const type = TYPES[command[0] as keyof typeof TYPES];
      if (type) used.types.add(type);
      for (const field of fields) used.fields.add(field);
      for (const [, text = ''] of lua.matchAll(/'([a-z_]+)'/g)) used.texts.add(text);
      if (!file.startsWith('shared/')) used.scripts.add(file.replace(/^.*\/|\.lua$/g, ''));
    }
  }
  return all;
}

function* callsIn(lua: string): Generator<{ name: string; command: string; fields: string[] }> {
  for (const [, command = '', key, argument, rest = ''] of lua.matchAll(CALL)) {
    const name = key ?? argument ?? '';
    yield { name: IN_SCRIPTS[name] ?? name, command, fields: fieldsOf(command, rest) };
  }
}

/** The fields that a command names as literals. In HSET and XADD every other argument is a value. */
function fieldsOf(command: string, rest: string): string[] {
  const given = rest
    .replace(/\([^()]*\)/g, '')
    .split(',')
    .map((part) => part.trim())
    .slice(1);
  const named = command === 'XADD' ? given.slice(1) : given;
  const isPaired = ['HSET', 'XADD', 'HINCRBY'].includes(command);
  if (!isPaired && !/^H(?:M?GET|DEL|EXISTS)$/.test(command)) return [];
  const fields = isPaired ? named.filter((_, i) => i % 2 === 0) : named;
  return fields.flatMap((field) => Array.from(field.matchAll(/'([a-z_]+)'/g), ([, name = '']) => name));
}
