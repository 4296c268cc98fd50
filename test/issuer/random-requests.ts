import type { OpenApi } from '@presign/issuer';
import fc from 'fast-check';
import { bodyOf, operations, type Place, resolved } from './document.ts';

type Schema = OpenApi['components']['schemas'][string];

/** A request near what the document has: in full, or off by a little or by a lot. */
export type RandomRequest = {
  readonly place: Place;
  /** Usually the operation's own. */
  readonly method: string;
  /** Path parameters: the n-th newest id in the answers so far, or text for the path, unchanged. */
  readonly ids: readonly (number | string)[];
  readonly query: readonly (readonly [string, string])[];
  readonly body: string | Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly key: 'own' | 'powerless' | 'none';
};

/** Requests to every operation alike. */
export const randomRequest = (): fc.Arbitrary<RandomRequest> =>
  fc.constantFrom(...operations).chain((place) =>
    fc.record({
      place: fc.constant(place),
      method: mostly(fc.constant(place.method), fc.constantFrom(...METHODS)),
      ids: fc.array(mostly(fc.nat(20), fc.oneof(fc.uuid(), NO_ID)), { minLength: 2, maxLength: 2 }),
      query: queryOf(place),
      body: randomBody(bodyOf(place.operation)),
      headers: HEADERS,
      key: mostly(fc.constant('own' as const), fc.constantFrom('powerless' as const, 'none' as const)),
    }),
  );

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Nine times in ten the first. */
const mostly = <A, B>(usual: fc.Arbitrary<A>, other: fc.Arbitrary<B>): fc.Arbitrary<A | B> =>
  fc.oneof({ weight: 9, arbitrary: usual as fc.Arbitrary<A | B> }, { weight: 1, arbitrary: other });

const NO_ID = fc.oneof(
  fc.constantFrom(
    '%00',
    '%',
    '%zz',
    '%ff',
    '%F0%9F%92%A9',
    '..',
    '%2e%2e',
    '%2F',
    '-1',
    'null',
    '{id}',
    'a'.repeat(5_000),
  ),
  fc.string({ unit: 'binary' }).map((text) => encodeURIComponent(text.toWellFormed())),
);

const rarely = (...values: string[]) => mostly(fc.constant(undefined), fc.constantFrom(...values));

/** Undefined: not sent. */
const HEADERS = fc.record({
  'content-type': mostly(
    fc.constantFrom('application/json', 'application/json; charset=utf-8'),
    fc.constantFrom(
      'text/plain',
      'application/xml',
      'multipart/form-data',
      'application/json5',
      ';',
      'application/json, text/plain',
    ),
  ),
  'idempotency-key': rarely('a', 'b', 'c', 'é', 'a b', 'x'.repeat(256), ' '),
  'content-encoding': rarely('identity', 'gzip', 'br', 'x'),
  accept: rarely('text/csv', 'application/json', '*/*', 'q', 'text/csv;q=x', ',,;=', '*/*;q=0'),
  'accept-encoding': rarely('gzip', 'identity;q=0', 'x'),
});

/** Parameters as documented or nearly; sometimes one twice, or one that is not known. */
function queryOf({ operation }: Place): fc.Arbitrary<[string, string][]> {
  const known = (operation.parameters ?? []).filter((each) => each.in === 'query');
  const pairs = known.map(({ name, schema, required }) => {
    const value = mostly(allowedBy(schema), fc.oneof(fc.string({ unit: 'binary' }), NUMBERS)).map(asText);
    return { required, pair: value.map((text): [string, string] => [name, text]) };
  });
  const each = pairs.map(({ required, pair }) =>
    fc.oneof(
      { weight: required ? 20 : 1, arbitrary: pair.map((one) => [one]) },
      fc.constant<[string, string][]>([]),
    ),
  );
  const strange = fc.oneof(
    { weight: 12, arbitrary: fc.constant<[string, string][]>([]) },
    fc.array(fc.tuple(fc.constantFrom('limit', '__proto__', 'x', ''), fc.string()), { maxLength: 2 }),
  );
  return fc.tuple(fc.tuple(...each), strange).map(([some, more]) => [...some.flat(), ...more]);
}

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed();

/** A body as documented, with some of it exchanged; sometimes no JSON at all. */
function randomBody(schema: Schema | undefined): fc.Arbitrary<string | Uint8Array | undefined> {
  const garbage = fc.oneof(
    fc.uint8Array(),
    fc.json(),
    fc.string(),
    fc.constantFrom('', '{', '[[[[', '{"a":1,"a":2}', '\ufeff{}'),
  );
  if (schema === undefined) return mostly(fc.constant(undefined), garbage);
  const whole = fc.tuple(fc.constant(schema.examples?.[0] ?? {}), someFields(schema));
  const body = whole.map(([example, fields]) => ({ ...(example as object), ...fields }));
  return mostly(
    fc
      .tuple(body, fc.oneof(fc.constant<Change[]>([]), fc.array(CHANGE, { maxLength: 3 })))
      .map(([value, changes]) => write(changes.reduce(changed, value))),
    garbage,
  );
}

/** Some of an object's fields, each as documented. */
const someFields = (schema: Schema): fc.Arbitrary<Record<string, unknown>> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.record(fieldsOf(schema), { requiredKeys: [] }) },
    fc.constant<Record<string, unknown>>({}),
  );

const fieldsOf = ({ properties = {} }: Schema) =>
  Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, allowedBy(field as Schema)]));

const NUMBERS = fc.constantFrom(
  0,
  -0,
  -1,
  1,
  59,
  60,
  1.5,
  1e21,
  2 ** 53,
  -(2 ** 53),
  2 ** 31,
  31_536_001,
  1e308,
);

/** Values that a schema allows. */
function allowedBy(schema: Schema): fc.Arbitrary<unknown> {
  const own = resolved(schema);
  const kinds = (own.anyOf ?? own.oneOf) as Schema[] | undefined;
  if (kinds) return fc.oneof(...kinds.map(allowedBy));
  if (own.const !== undefined) return fc.constant(own.const);
  if (own.enum) return fc.constantFrom(...own.enum);
  switch (own.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return fc.maxSafeInteger().map((n) => Math.min(Math.max(n, own.minimum ?? n), own.maximum ?? n));
    case 'string':
      return textOf(own);
    case 'array':
      return fc.array(allowedBy((own.items ?? {}) as Schema), {
        minLength: own.minItems ?? 0,
        maxLength: Math.min(own.maxItems ?? 4, 4),
      });
    case 'object':
      return own.properties
        ? fc.record(fieldsOf(own), { requiredKeys: own.required ?? [] })
        : fc.dictionary(fc.string({ unit: 'grapheme' }), anyValue(own.additionalProperties), { maxKeys: 4 });
    default:
      return fc.jsonValue();
  }
}

const anyValue = (schema: unknown) =>
  typeof schema === 'object' && schema !== null && Object.keys(schema).length > 0
    ? allowedBy(schema as Schema)
    : fc.jsonValue();

function textOf({ format, pattern, minLength = 0, maxLength = 20 }: Schema): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.uuid();
  if (format === 'uri') return fc.webUrl();
  if (format === 'date-time')
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date(8e12) })
      .map((date) => date.toISOString());
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern)).map((text) => text.slice(0, 500));
  return fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 40) });
}

/** A change to a place in a value. These numbers lead down to the place. */
type Change = {
  readonly way: readonly number[];
  readonly deed: 'drop' | 'put' | 'add' | 'wrap';
  readonly value: unknown;
};

const CHANGE: fc.Arbitrary<Change> = fc.record({
  way: fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }),
  deed: fc.constantFrom('drop' as const, 'put' as const, 'add' as const, 'wrap' as const),
  value: fc.oneof(
    fc.jsonValue(),
    NUMBERS,
    fc.constantFrom(
      '\0',
      '\ud800',
      'x'.repeat(300),
      '',
      ' ',
      '__proto__',
      '💩'.repeat(256),
      [],
      {},
      null,
      true,
    ),
    fc.string({ unit: 'binary' }),
  ),
});

function changed(whole: unknown, { way: [step = 0, ...way], deed, value }: Change): unknown {
  if (typeof whole !== 'object' || whole === null) return value;
  const keys = Object.keys(whole);
  const key = keys[step % Math.max(keys.length, 1)];
  const copy: Record<string, unknown> | unknown[] = Array.isArray(whole) ? [...whole] : { ...whole };
  const put = (name: string, what: unknown) =>
    Object.defineProperty(copy, name, { value: what, enumerable: true, configurable: true, writable: true });
  if (key === undefined || (way.length === 0 && deed === 'add'))
    return put(Array.isArray(copy) ? '0' : asText(value), value);
  const inside = (whole as Record<string, unknown>)[key];
  if (way.length > 0) return put(key, changed(inside, { way, deed, value }));
  if (deed === 'wrap') return put(key, [inside]);
  if (deed === 'put') return put(key, value);
  if (Array.isArray(copy)) return copy.filter((_, i) => String(i) !== key);
  delete copy[key];
  return copy;
}

/** Now and then as only hands write it: lone surrogates as they are, and -0. */
const write = (value: unknown) => JSON.stringify(value) ?? 'undefined';
