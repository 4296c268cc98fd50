import type { KeyPolicy } from '@presign/client';
import { readMoney, writeMoney } from '../data/format/format.ts';
import { readSpan, writeSpan } from '../data/format/span.ts';

type Fixed = Exclude<keyof KeyPolicy, 'highest' | 'bind'> | `bind.${keyof NonNullable<KeyPolicy['bind']>}`;
/** A highest limit. The issuer defines which limits exist. */
type Highest = `highest.${string}`;

type Kind = 'list' | 'money' | 'count' | 'span' | 'flag' | 'json' | 'text';

/** How each field is entered, by its name in refusals of the issuer. `tsc` fails if a new field is missing. */
const KINDS = {
  providers: 'list',
  models: 'list',
  paths: 'list',
  virtual_keys: 'list',
  mcp_hosts: 'list',
  required: 'list',
  'bind.origins': 'list',
  'bind.ip_ranges': 'list',
  sockets: 'flag',
  external_user: 'text',
  max_body_bytes: 'count',
  allowed_fields: 'list',
  config: 'json',
  refuse_warnings: 'flag',
} as const satisfies Record<Fixed, Kind>;

/** The kinds of highest limits that are not counts. */
const HIGHEST: Readonly<Record<string, 'money' | 'span'>> = {
  'highest.cost_limit': 'money',
  'highest.expires_in': 'span',
};

type NamesOf<K> = { [N in Fixed]: (typeof KINDS)[N] extends K ? N : never }[Fixed];
export type ListField = NamesOf<'list'>;
export type TextField = Exclude<Fixed, ListField> | Highest;

const kindOf = (field: string): Kind => KINDS[field as Fixed] ?? HIGHEST[field] ?? 'count';

const isHighest = (field: string): field is Highest => field.startsWith('highest.');

/** A policy as entered. An undefined list or an empty text omits its field. */
export type PolicyDraft = {
  readonly lists: Readonly<Partial<Record<ListField, readonly string[] | undefined>>>;
  readonly texts: Readonly<Partial<Record<TextField, string>>>;
  /** The parts of the JSON without a control. The issuer validates them. */
  readonly others: JsonObject;
};

type JsonObject = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

type Rule = {
  /** The value as a text. Undefined: not a value of the kind. */
  readonly write: (value: unknown) => string | undefined;
  /** The value of a text. Undefined: it cannot be read. */
  readonly read: (text: string) => unknown;
  readonly expected: string;
};

const whole = (write: (value: number) => string) => (value: unknown) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? write(value) : undefined;

const FLAGS: Readonly<Record<string, boolean>> = { true: true, false: false };

const RULES: Readonly<Record<Exclude<Kind, 'list'>, Rule>> = {
  money: { write: whole(writeMoney), read: readMoney, expected: 'Expected dollars, such as 25 or 0.50.' },
  count: {
    write: whole(String),
    read: (text) =>
      /^\d{1,16}$/.test(text.trim()) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined,
    expected: 'Expected a whole number.',
  },
  span: {
    write: whole(writeSpan),
    read: readSpan,
    expected: 'Expected a time, such as 15 minutes or 2 days.',
  },
  flag: {
    write: (value) => (typeof value === 'boolean' ? String(value) : undefined),
    read: (text) => FLAGS[text],
    expected: 'Expected true or false.',
  },
  json: {
    write: (value) => (isObject(value) ? JSON.stringify(value) : undefined),
    read: (text) => {
      const value = parse(text);
      return isObject(value) ? value : undefined;
    },
    expected: 'Expected a JSON object, such as {"max_tokens": 500}.',
  },
  text: {
    write: (value) => (typeof value === 'string' ? value : undefined),
    read: (text) => text,
    expected: 'Expected a text.',
  },
};

const ruleOf = (field: TextField): Rule => RULES[kindOf(field) as Exclude<Kind, 'list'>];

/** Why a text is not a valid value of its field. Empty: it is valid, or omits the field. */
export const problemOf = (field: TextField, text: string): string =>
  text.trim() === '' || ruleOf(field).read(text) !== undefined ? '' : ruleOf(field).expected;

/** The JSON value of a text. Undefined: it is not JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const pathOf = (field: string): [string, string | undefined] => {
  const [first = '', second] = field.split('.');
  return [first, second];
};

/** Converts a policy or its JSON into the texts and lists of the controls, without loss. */
export function draftOf(policy: JsonObject): PolicyDraft {
  const others = structuredClone(policy) as Record<string, unknown>;
  const lists: Partial<Record<ListField, readonly string[]>> = {};
  const texts: Partial<Record<TextField, string>> = {};
  const highest = isObject(policy['highest']) ? Object.keys(policy['highest']) : [];
  for (const field of [...Object.keys(KINDS), ...highest.map((name) => `highest.${name}`)]) {
    const [first, second] = pathOf(field);
    const outer = second === undefined ? others : others[first];
    if (!isObject(outer)) continue;
    const value = outer[second ?? first];
    if (kindOf(field) === 'list') {
      if (!isTexts(value)) continue;
      lists[field as ListField] = value;
    } else {
      const text = ruleOf(field as TextField).write(value);
      if (text === undefined || text === '') continue;
      texts[field as TextField] = text;
    }
    delete (outer as Record<string, unknown>)[second ?? first];
    if (second !== undefined && Object.keys(outer).length === 0) delete others[first];
  }
  return { lists, texts, others };
}

/** The policy of a draft. Null: it has no field, so the key may issue everything. A text that cannot be parsed is omitted. */
export function policyOf({ lists, texts, others }: PolicyDraft): KeyPolicy | null {
  const policy = structuredClone(others) as Record<string, unknown>;
  for (const field of [...Object.keys(KINDS), ...Object.keys(texts).filter(isHighest)]) {
    const text = texts[field as TextField] ?? '';
    const value =
      lists[field as ListField] ?? (text.trim() === '' ? undefined : ruleOf(field as TextField).read(text));
    if (value === undefined) continue;
    const [first, second] = pathOf(field);
    if (second === undefined) policy[first] = value;
    else policy[first] = { ...(isObject(policy[first]) && policy[first]), [second]: value };
  }
  return Object.keys(policy).length === 0 ? null : (policy as KeyPolicy);
}
