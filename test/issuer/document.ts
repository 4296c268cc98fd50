import type { OpenApi } from '@presign/issuer';
import { api } from '../harness/documented.ts';

type Operation = OpenApi['paths'][string][string];
type Schema = OpenApi['components']['schemas'][string];

/** An operation, and where it stands. */
export type Place = { readonly path: string; readonly method: string; readonly operation: Operation };

/** All operations of the document. */
export const operations: readonly Place[] = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

/** The scope that an operation needs; undefined when it needs no API key. */
export const scopeOf = ({ security }: Operation): string | undefined => security[0]?.apiKey?.[0];

/** An operation's path with its parameters filled in; those not given name nothing. */
export const pathOf = ({ path }: Place, given: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => given[name] ?? '0d9c8b7a-6f5e-4d3c-8b2a-190807060504');

/** A schema, wherever it stands. */
export function resolved(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (api.components.schemas[name] ?? {});
}

/** The schema of an operation's body; undefined when it takes no body. */
export function bodyOf({ requestBody }: Operation): Schema | undefined {
  const schema = requestBody?.content['application/json'].schema;
  return schema && resolved(schema);
}

/** A parameter or a field of a body. */
type Field = { readonly name: string; readonly described: boolean; readonly secret: boolean };

/** Every parameter and every field of the body that an operation takes, fields of fields by dotted names. */
export function fieldsOf(operation: Operation): Field[] {
  const parameters = (operation.parameters ?? []).map(({ name, description, in: place }) => ({
    name,
    // The path already says what its id names.
    described: description !== undefined || place === 'path',
    secret: false,
  }));
  const body = bodyOf(operation);
  return [...parameters, ...(body ? fieldsIn(body, '') : [])];
}

function fieldsIn(schema: Schema, prefix: string): Field[] {
  const own = resolved(schema);
  const kinds = [...(own.anyOf ?? []), ...(own.oneOf ?? [])] as Schema[];
  const items = own.items === undefined ? [] : [own.items as Schema];
  const fields = Object.entries(own.properties ?? {}).flatMap(([name, field]) => {
    const property = field as Schema;
    const inside = fieldsIn(property, `${prefix}${name}.`);
    // A reference can have a description of its own: JSON Schema 2020-12 reads keywords next to $ref.
    const description = property.description ?? resolved(property).description;
    const forms = [property, ...((property.anyOf ?? []) as Schema[])];
    const secret = forms.some(({ format }) => format === 'password');
    return [{ name: `${prefix}${name}`, described: description !== undefined, secret }, ...inside];
  });
  return [...fields, ...[...kinds, ...items].flatMap((each) => fieldsIn(each, prefix))];
}

/** Every schema in the document that has examples. */
export function schemasIn(value: unknown): Schema[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.values(value).flatMap(schemasIn);
  return 'examples' in value && Array.isArray(value.examples) ? [value as Schema, ...inside] : inside;
}
