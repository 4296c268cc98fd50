import type { Api, Schema } from './api.ts';

const KEYWORDS = new Set(['as', 'class', 'def', 'del', 'from', 'global', 'in', 'is', 'not', 'pass', 'with']);

/** A name that may be an argument in Python: `from_` stands for `from`. */
export const pythonName = (name: string): string => (KEYWORDS.has(name) ? `${name}_` : name);

/** `listCalls` is `list_calls`. */
export const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The typed dictionaries of all schemas. */
export function modelsFile(api: Api): string {
  const { Error: errorBody = {}, ...others } = api.components.schemas;
  const models = new Map<string, string>();
  for (const name of Object.keys(others)) addModel(models, others, name);
  models.set('ErrorBody', modelOf('ErrorBody', errorBody));
  return `"""Requests and answers of the issuer. At run time they are plain dictionaries."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import NotRequired, TypeAlias, TypedDict

${[...models.values()].join('\n\n')}
`;
}

/** Python evaluates an alias, so the models that it names come first. */
function addModel(models: Map<string, string>, schemas: Api['components']['schemas'], name: string): void {
  const { [name]: schema } = schemas;
  if (!schema || models.has(name)) return;
  if (!schema.properties)
    for (const [word] of typeOf(schema).matchAll(/\w+/g)) addModel(models, schemas, word);
  models.set(name, modelOf(name, schema));
}

export type Field = {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description?: string | undefined;
};

function modelOf(name: string, schema: Schema): string {
  if (!schema.properties) return alias(name, schema);
  const parts: string[] = [];
  const fields = Object.entries(schema.properties).map(([key, each]): Field => {
    const inner = `${name}${key[0]?.toUpperCase()}${key.slice(1)}`;
    if (each.properties) parts.push(modelOf(inner, each));
    return {
      name: key,
      type: each.properties ? inner : typeOf(each),
      isRequired: schema.required?.includes(key) ?? false,
      description: each.description,
    };
  });
  return [...parts, typedDict(name, fields, schema.description)].join('\n\n');
}

function alias(name: string, schema: Schema): string {
  const about = schema.description === undefined ? '' : `\n${docstring(schema.description)}`;
  return `${name}: TypeAlias = ${typeOf(schema)}${about}`;
}

/** A class, or a call where a class could not have the keys. */
export function typedDict(name: string, fields: readonly Field[], about?: string): string {
  const written = fields.map(({ isRequired, type, ...field }) => ({
    ...field,
    type: isRequired ? type : `NotRequired[${type}]`,
  }));
  if (written.some((field) => pythonName(field.name) !== field.name)) {
    const keys = written.map((field) => `    ${JSON.stringify(field.name)}: ${JSON.stringify(field.type)},`);
    return `${name} = TypedDict(\n    "${name}",\n    {\n${keys.map((key) => `    ${key}`).join('\n')}\n    },\n)`;
  }
  const lines = written.flatMap((field) => [
    `    ${field.name}: ${field.type}`,
    ...(field.description === undefined ? [] : [`    ${docstring(field.description)}`]),
  ]);
  const head = about === undefined ? [] : [`    ${docstring(about)}`];
  return `class ${name}(TypedDict):\n${[...head, ...lines].join('\n') || '    pass'}`;
}

/** One line. A quote or a backslash would end or change it. */
export const docstring = (text: string): string =>
  `"""${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', ' ')}"""`;

/** The type that values of a schema have. A pattern or a range only narrows a value, and has no type. */
export function typeOf(schema: Schema): string {
  const { $ref, enum: values, const: value, anyOf, type, items = {}, additionalProperties } = schema;
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? '';
  if (values) return `Literal[${values.map(literal).join(', ')}]`;
  if (value !== undefined) return `Literal[${literal(value)}]`;
  if (anyOf) return unionOf(anyOf);
  if (typeof type === 'object') {
    return unionOf(type.map((each) => ({ ...schema, type: each })));
  }
  if (type === 'array') return `list[${typeOf(items)}]`;
  if (type !== 'object') return PLAIN[type ?? ''] ?? 'Any';
  const each = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'Any';
  return `dict[str, ${each}]`;
}

const PLAIN: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
};

function unionOf(schemas: readonly Schema[]): string {
  const types = [...new Set(schemas.map((each) => typeOf(each)))];
  return types.join(' | ');
}

const literal = (value: unknown): string =>
  value === true ? 'True' : value === false ? 'False' : JSON.stringify(value);
