import { html } from 'hono/html';
import { exampleOf, type JsonSchema } from './json-schema.ts';

export type Schemas = Readonly<Record<string, JsonSchema>>;

/** The schema that a reference names, or the schema itself. */
export function resolve(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : { ...schemas[name], ...schema };
}

/** A field with its type and facts, and the fields inside it. */
export function showField(
  field: { readonly name: string; readonly required: boolean; readonly schema: JsonSchema },
  schemas: Schemas,
  side: 'request' | 'answer',
): Html {
  const schema = resolve(field.schema, schemas);
  // The introduction says once for all requests that null means the same as leaving a field out.
  const type = typeOf(schema, schemas).replace(
    side === 'request' && !field.required ? / or null$/ : /$^/,
    '',
  );
  const facts = [...factsOf(notNull(schema)), ...defaultAndExampleOf(schema)];
  return html`<li>
    <div class="field"><code class="name">${field.name}</code> <span class="type">${type}</span>
      ${side === 'request' && field.required ? html`<span class="required">required</span>` : ''}
      ${facts.map((fact) => html`<span class="fact">${fact}</span>`)}</div>
    ${schema.description === undefined ? '' : prose(schema.description)}
    ${showInside(schema, schemas, side)}
  </li>`;
}

/** The fields of an object. */
export function showFields(schema: JsonSchema, schemas: Schemas, side: 'request' | 'answer'): Html | '' {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties);
  if (fields.length === 0) return '';
  return html`<ul class="fields">
    ${fields.map(([name, property]) =>
      showField({ name, required: required.includes(name), schema: property as JsonSchema }, schemas, side),
    )}
  </ul>`;
}

function showInside(schema: JsonSchema, schemas: Schemas, side: 'request' | 'answer'): Html {
  const inside = objectsIn(schema, schemas).filter(
    ({ properties = {} }) => Object.keys(properties).length > 0,
  );
  return html`${inside.map((object) => {
    const title = inside.length > 1 ? `Fields of ${object.title ?? 'one kind'}` : 'Fields';
    return html`<details><summary>${title}</summary>${showFields(object, schemas, side)}</details>`;
  })}`;
}

/** The objects that a value may be or contain. */
function objectsIn(schema: JsonSchema, schemas: Schemas): JsonSchema[] {
  const own = resolve(schema, schemas);
  if (own.anyOf ?? own.oneOf) return kindsOf(own).flatMap((kind) => objectsIn(kind, schemas));
  if (own.properties) return [own];
  const held = own.items ?? own.additionalProperties;
  return typeof held === 'object' && !Array.isArray(held) ? objectsIn(held, schemas) : [];
}

function typeOf(schema: JsonSchema, schemas: Schemas): string {
  const own = resolve(schema, schemas);
  if (own.anyOf ?? own.oneOf) {
    return [...new Set(kindsOf(own).map((kind) => typeOf(kind, schemas)))].join(' or ');
  }
  if (own.const !== undefined) return JSON.stringify(own.const);
  if (own.enum) return own.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (own.type === 'array') return `array of ${plural(typeOf((own.items ?? {}) as JsonSchema, schemas))}`;
  const values = own.additionalProperties;
  if (own.type === 'object' && typeof values === 'object' && Object.keys(values).length > 0) {
    return `object of ${plural(typeOf(values, schemas))} by name`;
  }
  return [own.type ?? 'any JSON'].flat().join(' or ');
}

const plural = (type: string) => (/^(string|object|integer|number)$/.test(type) ? `${type}s` : type);

const kindsOf = (schema: JsonSchema) => (schema.anyOf ?? schema.oneOf ?? [schema]) as JsonSchema[];

/** The kind that is not null, if there is exactly one; the facts of several kinds are not shown. */
function notNull(schema: JsonSchema): JsonSchema {
  const kinds = kindsOf(schema).filter((kind) => kind.type !== 'null');
  return kinds.length === 1 && kinds[0] ? kinds[0] : {};
}

function factsOf(schema: JsonSchema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, format, pattern, not } = schema;
  const range = (least: number | undefined, most: number | undefined, unit: string) =>
    least === undefined && most === undefined
      ? []
      : [
          `${least === undefined ? 'at most' : most === undefined ? `at least ${least}` : `${least} to`} ${most ?? ''}${unit}`,
        ];
  const greatest = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  return [
    ...(format === undefined ? [] : [format]),
    ...range(minimum, greatest, ''),
    ...(typeof not === 'object' && 'const' in not ? [`not ${JSON.stringify(not.const)}`] : []),
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' entries'),
    ...(pattern === undefined ? [] : [inWords(pattern)]),
  ];
}

/** The most common pattern in words. */
const inWords = (pattern: string) =>
  pattern.replace(/^\^\[\\x21-\\x7e\]\{1,(\d+)\}\$$/, '1 to $1 visible ASCII characters');

function defaultAndExampleOf(schema: JsonSchema): string[] {
  const example = exampleOf(schema);
  return [
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
    ...(example === undefined ? [] : [`such as ${JSON.stringify(example)}`]),
  ];
}

export type Html = ReturnType<typeof html>;

/** Text of a description as paragraphs: empty lines separate them, backticks mark code. */
export const prose = (text: string): Html =>
  html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`;

/** Text of one line: every second piece between backticks is code. */
export const inline = (text: string): Html =>
  html`${text.split('`').map((piece, i) => (i % 2 ? html`<code>${piece}</code>` : piece))}`;
