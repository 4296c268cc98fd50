import { type Api, OF_A_PATH, type Operation, type Parameter, type Schema } from './api.ts';
import { docstring, pythonName, snakeCase, typedDict, typeOf } from './python-models.ts';

/** The client adds a surface to what these return. */
const BY_HAND = new Set(['presign', 'mcpPresign']);

type Kind = 'sync' | 'async';

/** Two classes with a method for each operation, and one more for each list, which iterates over its pages. */
export function pythonOperationsFile(api: Api): string {
  const operations = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method, { operationId }]) => !OF_A_PATH.has(method) && !BY_HAND.has(operationId))
      .map(([method, operation]) => readOperation(api, path, method.toUpperCase(), operation)),
  );
  const queries = operations.flatMap(({ query }) => (query ? [query.text] : []));
  const classes = (['sync', 'async'] as const).map((kind) => classOf(kind, operations));
  const code = [...queries, ...classes].join('\n\n');
  const isUsed = (name: string) => name !== 'Error' && new RegExp(`\\b${name}\\b`).test(code);
  const models = Object.keys(api.components.schemas).filter(isUsed);
  return `from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, overload

from typing_extensions import NotRequired, TypedDict, Unpack

from ._dollars import Dollars
from .models import (
${models.map((name) => `    ${name},`).join('\n')}
)

${code}
`;
}

type Read = {
  readonly name: string;
  readonly summary: string;
  readonly method: string;
  readonly path: string;
  readonly inPath: readonly string[];
  readonly query: { readonly name: string; readonly text: string } | undefined;
  readonly body: { readonly name: string; readonly hasCostLimit: boolean } | undefined;
  readonly hasCursor: boolean;
  readonly formats: readonly string[];
  readonly hasRevision: boolean;
  readonly answer: string;
  /** The type of a row of a list. */
  readonly row: string | undefined;
};

function readOperation(api: Api, path: string, method: string, operation: Operation): Read {
  const { operationId, parameters = [], requestBody, responses, summary } = operation;
  const headers = parameters.filter((each) => each.in === 'header').map(({ name }) => name);
  // The client sends a key with every POST.
  if ((method === 'POST') !== headers.includes('Idempotency-Key'))
    throw new Error(`${operationId}: every POST takes an Idempotency-Key, and nothing else does`);
  const inQuery = parameters.filter((each) => each.in === 'query');
  const fields = inQuery.filter(({ name }) => name !== 'cursor' && name !== 'format');
  const format = inQuery.find(({ name }) => name === 'format')?.schema?.enum ?? [];
  const answers = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const types = answers.map(([, { content }]) => content?.['application/json']?.schema);
  const hasCursor = inQuery.some(({ name }) => name === 'cursor');
  return {
    ...{ name: snakeCase(operationId), summary, method, path, hasCursor },
    inPath: Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name),
    query: fields.length > 0 ? queryOf(operationId, fields) : undefined,
    body: requestBody && bodyOf(api, requestBody.content['application/json'].schema),
    formats: format.map(String).filter((each) => each !== 'json'),
    hasRevision: headers.includes('If-Match'),
    answer: types.map((schema) => (schema ? typeOf(schema) : 'None')).join(' | '),
    row: hasCursor ? rowOf(api, types[0]) : undefined,
  };
}

const schemaOf = (api: Api, { $ref = '' }: Schema): Schema =>
  api.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {};

function rowOf(api: Api, page: Schema | undefined): string | undefined {
  const items = page && schemaOf(api, page).properties?.data?.items;
  return items && typeOf(items);
}

function bodyOf(api: Api, schema: Schema): NonNullable<Read['body']> {
  return { name: typeOf(schema), hasCostLimit: 'cost_limit' in (schemaOf(api, schema).properties ?? {}) };
}

function queryOf(operationId: string, parameters: readonly Parameter[]): NonNullable<Read['query']> {
  const name = `${operationId[0]?.toUpperCase()}${operationId.slice(1)}Query`;
  const fields = parameters.map(({ name: field, required = false, schema = {}, description }) => ({
    name: pythonName(field),
    type: hasTime(schema) ? 'float | str | datetime | None' : `${typeOf(schema)} | None`,
    isRequired: required,
    description,
  }));
  return { name, text: typedDict(name, fields) };
}

const hasTime = ({ anyOf = [] }: Schema): boolean => anyOf.some(({ format }) => format === 'date-time');

function classOf(kind: Kind, operations: readonly Read[]): string {
  const [name, def, iterator] =
    kind === 'sync' ? ['Operations', 'def', 'Iterator'] : ['AsyncOperations', 'async def', 'AsyncIterator'];
  const methods = operations.flatMap((each) => [
    ...(each.formats.length > 0 ? overloads(def, each) : []),
    methodOf(kind, each),
    ...(each.row === undefined ? [] : [iteratorOf(iterator, each)]),
  ]);
  return `class ${name}:
    ${def} _send(self, method: str, path: str, values: Mapping[str, str], **parts: Any) -> Any:
        raise NotImplementedError

    def _each(self, path: str, values: Mapping[str, str], query: Mapping[str, Any]) -> ${iterator}[Any]:
        raise NotImplementedError

${methods.join('\n\n')}`;
}

/** The arguments of a method: those by name after the star. */
function signature(read: Read, ...own: readonly string[]): string {
  const { inPath, method, body, query, hasRevision } = read;
  const byName = [
    ...own,
    ...(method === 'POST' ? ['idempotency_key: str | None = None'] : []),
    ...(hasRevision ? ['if_revision: int | None = None'] : []),
    ...(body?.hasCostLimit ? ['cost_limit_usd: Dollars | None = None'] : []),
  ];
  const rest = body?.name ?? query?.name;
  return [
    'self',
    ...inPath.map((name) => `${name}: str`),
    ...(byName.length > 0 ? ['*', ...byName] : []),
    ...(rest === undefined ? [] : [`**fields: Unpack[${rest}]`]),
  ].join(', ');
}

const cursorOf = ({ hasCursor }: Read) => (hasCursor ? ['cursor: str | None = None'] : []);

function overloads(def: string, read: Read): string[] {
  const texts = `Literal[${read.formats.map((each) => `"${each}"`).join(', ')}]`;
  const of = (format: string, answer: string) =>
    `    @overload\n    ${def} ${read.name}(${signature(read, `format: ${format}`, ...cursorOf(read))}) -> ${answer}: ...`;
  return [of(texts, 'str'), of('Literal["json"] = "json"', read.answer)];
}

function methodOf(kind: Kind, read: Read): string {
  const { body, query, hasCursor, hasRevision, method, formats, path } = read;
  const hasFormats = formats.length > 0;
  const own = [...(hasFormats ? ['format: str = "json"'] : []), ...cursorOf(read)];
  const inQuery = [
    ...(query ? ['**fields'] : []),
    ...(hasCursor ? ['"cursor": cursor'] : []),
    ...(hasFormats ? ['"format": format'] : []),
  ];
  const parts = [
    ...(inQuery.length > 0 ? [`query={${inQuery.join(', ')}}`] : []),
    ...(body ? ['body=fields'] : []),
    ...(method === 'POST' ? ['idempotency_key=idempotency_key'] : []),
    ...(hasRevision ? ['if_revision=if_revision'] : []),
    ...(body?.hasCostLimit ? ['cost_limit_usd=cost_limit_usd'] : []),
  ];
  const [def, wait] = kind === 'sync' ? ['def', ''] : ['async def', 'await '];
  const answer = hasFormats ? `str | ${read.answer}` : read.answer;
  const send = `${wait}self._send(${[`"${method}"`, `"${path}"`, valuesOf(read), ...parts].join(', ')})`;
  return `    ${def} ${read.name}(${signature(read, ...own)}) -> ${answer}:
        ${docstring(`${read.summary}.`)}
        ${read.answer === 'None' ? send : `answer: ${answer} = ${send}\n        return answer`}`;
}

const valuesOf = ({ inPath }: Read) => `{${inPath.map((name) => `"${name}": ${name}`).join(', ')}}`;

function iteratorOf(iterator: string, read: Read): string {
  const fields = read.query ? 'fields' : '{}';
  return `    def ${read.name.replace(/^(list|get)_/, '')}(${signature(read)}) -> ${iterator}[${read.row}]:
        ${docstring(`${read.summary}: the rows of all pages.`)}
        return self._each("${read.path}", ${valuesOf(read)}, ${fields})`;
}
