/** The reply of a script as Redis sends it. */
export type Raw = string | number | null | Raw[];

/** A named value of a reply: how the script writes it, and how it is read. */
export type Field<T> = {
  /** The Lua that returns the value of this Lua expression. */
  readonly lua: (value: string) => string;
  readonly read: (raw: Raw) => T;
  /** A text cannot have a list. */
  readonly isList?: true;
};

/** The values of each kind of reply, by name. */
export type Kinds = Readonly<Record<string, Readonly<Record<string, Field<unknown>>>>>;

/** All that a script may return. */
export type Reply<T> = { readonly kinds?: Kinds; readonly read: (raw: Raw) => T };

const asIs = (value: string) => value;

export const text: Field<string> = { lua: asIs, read: String };

/** A small whole number. ioredis reads integers near 2^53 wrongly (redis-parser, `parseSimpleNumbers`). */
export const number: Field<number> = { lua: asIs, read: Number };

/** A whole number up to 2^53 - 1. It travels as text, which is exact. */
export const figure: Field<number> = { lua: (value) => `string.format('%.0f', ${value})`, read: Number };

export const flag: Field<boolean> = {
  lua: (value) => `(${value} and 1 or 0)`,
  read: (raw) => Number(raw) === 1,
};

export const texts: Field<string[]> = { lua: asIs, read: (raw) => raw as string[], isList: true };
export const numbers: Field<number[]> = { lua: asIs, read: (raw) => raw as number[], isList: true };

/** Undefined where the script gives nil. */
export const optional = <T>(field: Field<T>): Field<T | undefined> => ({
  lua: (value) => `(${value} and ${field.lua(value)} or '')`,
  read: (raw) => (raw === '' ? undefined : field.read(raw)),
});

type OneOf<K extends Kinds> = {
  [N in keyof K & string]: { readonly is: N } & {
    readonly [F in keyof K[N]]: K[N][F] extends Field<infer T> ? T : never;
  };
}[keyof K & string];

/** Between the values of a reply in one text. No value contains it. */
const BETWEEN = '\t';

/** A list of eleven values costs the client twice the CPU of one text. */
const isOneText = (kinds: Kinds): boolean =>
  !Object.values(kinds).some((fields) => Object.values(fields).some(({ isList }) => isList));

/** The Lua that returns a reply of this kind with these values. */
export function luaReply(kinds: Kinds, kind: string, values: readonly string[]): string {
  const list = `{${[`'${kind}'`, ...values].join(', ')}}`;
  return isOneText(kinds) ? `table.concat(${list}, '\\t')` : list;
}

/** One of several kinds of reply. The script writes `reply.<kind>` or `reply.<kind>{name = value, …}`. */
export function oneOf<const K extends Kinds>(kinds: K): Reply<OneOf<K>> {
  const readers = new Map(Object.entries(kinds).map(([is, fields]) => [is, Object.entries(fields)]));
  const valuesOf = isOneText(kinds) ? (raw: Raw) => String(raw).split(BETWEEN) : (raw: Raw) => raw as Raw[];
  const read = (raw: Raw) => {
    const values = valuesOf(raw);
    const is = String(values[0]);
    const fields = readers.get(is);
    if (fields?.length !== values.length - 1) throw new Error(`a script returned ${is} with other values`);
    const reply: Record<string, unknown> = { is };
    for (let i = 0; i < fields.length; i++) {
      const [name, { read }] = fields[i] as (typeof fields)[number];
      reply[name] = read(values[i + 1] as Raw);
    }
    return reply as OneOf<K>;
  };
  return { kinds, read };
}
