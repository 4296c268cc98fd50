import { readMoney } from '../data/format/format.ts';

/** JSON Schema, as far as the requests of the issuer use it. */
export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly not?: { readonly const?: unknown };
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
};

/** A schema with every `$ref` replaced by its target. A recursive reference is cut there. */
export function inlined(
  schema: Schema,
  named: Readonly<Record<string, Schema>>,
  within: readonly string[] = [],
): Schema {
  const { $ref: ref, ...own } = schema;
  const name = ref?.split('/').at(-1);
  if (name !== undefined && within.includes(name)) return own;
  const path = name === undefined ? within : [...within, name];
  const whole = { ...(name !== undefined && named[name]), ...own };
  const inner = (each: Schema) => inlined(each, named, path);
  const { anyOf, items, properties } = whole;
  const inside = {
    ...(anyOf && { anyOf: anyOf.map(inner) }),
    ...(items && { items: inner(items) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([label, each]) => [label, inner(each)])),
    }),
  };
  const all = { ...whole, ...inside };
  // A named type may name another one.
  return all.$ref === undefined ? all : inlined(all, named, path);
}

/**
 * How a value is entered. `lines` is a list of texts, `group` has its own fields, and `list` is a list of groups. `dollars` are sent as
 * microdollars.
 */
export type Kind =
  | 'text'
  | 'secret'
  | 'number'
  | 'dollars'
  | 'switch'
  | 'choice'
  | 'lines'
  | 'json'
  | 'group'
  | 'list';

/** A field of a request, by the name that the issuer gives it in a refusal, such as `servers[0].url`. */
export type RequestField = {
  readonly name: string;
  readonly label: string;
  readonly kind: Kind;
  /** Without the alternative `null`, which means the same as omitting the field. */
  readonly schema: Schema;
  readonly isRequired: boolean;
};

/** The entered texts, by the names of the fields. */
export type Texts = ReadonlyMap<string, string>;

/** The fields of an object. If the form of a field depends on another field, it follows that field's entered value. */
export function fieldsOf(
  { properties = {}, required = [] }: Schema,
  at: string,
  texts: Texts,
): RequestField[] {
  return Object.entries(properties).map(([label, outer]) => {
    const name = nameOf(label, at);
    const schema = withoutNull(outer, (titles) => chosenOf(properties, titles, at, texts));
    return { name, label, kind: kindOf(schema), schema, isRequired: required.includes(label) };
  });
}

const nameOf = (label: string, at: string): string => (at === '' ? label : `${at}.${label}`);

function withoutNull(outer: Schema, choose: (titles: readonly string[]) => string | undefined): Schema {
  const { anyOf, ...own } = outer;
  const forms = anyOf?.filter(({ type }) => type !== 'null') ?? [];
  const titles = forms.flatMap(({ title }) => title ?? []);
  const form = forms.length === 1 ? forms[0] : forms.find(({ title }) => title && title === choose(titles));
  return form ? { ...form, ...own } : { ...outer, ...(anyOf && { anyOf: forms }) };
}

/** The value of the field whose values are these titles: `auth_type` chooses the form of `auth_config`. */
function chosenOf(
  properties: Readonly<Record<string, Schema>>,
  titles: readonly string[],
  at: string,
  texts: Texts,
): string | undefined {
  const [label, schema] =
    Object.entries(properties).find(([, each]) =>
      each.anyOf?.some((form) => titles.every((title) => form.enum?.includes(title))),
    ) ?? [];
  return label && (texts.get(nameOf(label, at)) || String(schema?.default));
}

/** The first words of the schema's description of an amount of money. */
const MICRO = /^Microdollars( that may be spent \(1 dollar = 1000000\))?/;

function kindOf(schema: Schema): Kind {
  const { type, format, items, properties } = schema;
  if (schema.enum) return 'choice';
  if (type === 'string') return format === 'password' ? 'secret' : 'text';
  if ([type].flat().includes('boolean')) return 'switch';
  if (type === 'integer' || type === 'number')
    return MICRO.test(schema.description ?? '') ? 'dollars' : 'number';
  if (properties) return 'group';
  if (items?.properties) return 'list';
  return listOf(schema).some((each) => each && isText(each)) ? 'lines' : 'json';
}

/** The items of a list, or of a list that can also be one text. */
const listOf = ({ items, anyOf = [] }: Schema) => [items, ...anyOf.map((form) => form.items)];

const isText = ({ type, anyOf }: Schema): boolean => type === 'string' || (anyOf?.every(isText) ?? false);

/** The form of one group in a list. */
export const groupOf = ({ schema: { items = {} } }: RequestField): Schema => items;

/** How many groups of a list were entered. */
export function lengthOf(name: string, texts: Texts): number {
  const names = [...texts.keys()];
  let length = 0;
  while (names.some((each) => each.startsWith(`${name}[${length}].`))) length++;
  return length;
}

/**
 * The entered request. Empty fields are omitted, and so are invalid JSON and invalid dollars.
 * @param secret the value to write in place of a secret
 */
export const readRequest = (schema: Schema, texts: Texts, secret: (name: string, text: string) => unknown) =>
  (readGroup(schema, '', texts, secret) ?? {}) as Record<string, unknown>;

type Secret = Parameters<typeof readRequest>[2];

function readGroup(schema: Schema, at: string, texts: Texts, secret: Secret): object | undefined {
  const values = fieldsOf(schema, at, texts).map(
    (field) => [field.label, read(field, texts, secret)] as const,
  );
  const given = values.filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

function read(field: RequestField, texts: Texts, secret: Secret): unknown {
  const { name, kind, schema } = field;
  if (kind === 'group') return readGroup(schema, name, texts, secret);
  if (kind === 'list')
    return Array.from({ length: lengthOf(name, texts) }, (_, at) =>
      readGroup(groupOf(field), `${name}[${at}]`, texts, secret),
    ).filter((each) => each !== undefined);
  const text = texts.get(name)?.trim() ?? '';
  if (text === '') return undefined;
  if (kind === 'number') return Number(text);
  if (kind === 'switch') return true;
  if (kind === 'dollars') return readMoney(text);
  if (kind === 'secret') return secret(name, text);
  if (kind === 'json') return readJson(text);
  return kind === 'lines' ? readLines(schema, text) : text;
}

/** Undefined: it is not JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readLines({ anyOf }: Schema, text: string): unknown {
  const lines = text.split('\n').flatMap((line) => line.trim() || []);
  return lines.length === 1 && anyOf?.some(isText) ? lines[0] : lines;
}

/** The description of a field, with its default and its range. */
export function hintOf({ schema, kind }: RequestField): string {
  const { description, default: fallback } = schema;
  return [
    kind === 'dollars'
      ? description?.replace(MICRO, 'Dollars that may be spent, such as 25 or 0.05')
      : description,
    kind === 'lines' && 'One a line.',
    kind === 'json' && 'JSON.',
    fallback !== undefined && `Default: ${String(fallback)}.`,
    kind !== 'dollars' && rangeOf(schema),
  ]
    .filter(Boolean)
    .join(' ');
}

function rangeOf({ minimum, maximum, not }: Schema): string | undefined {
  if (minimum === undefined || maximum === undefined) return undefined;
  const most = maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum.toLocaleString('en-US')}`;
  return `From ${minimum}${most}${not?.const === undefined ? '' : `, and not ${String(not.const)}`}.`;
}

/** An example of an input. */
export function exampleText(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  if (Array.isArray(value)) return value.join('\n');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
