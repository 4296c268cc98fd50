import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { generatedFiles } from '../generate/generated-files.ts';
import { operationsFile } from '../generate/operations-file.ts';

const FOLDER = new URL('../generated/', import.meta.url);

test('what is generated is what docs/reference/openapi.json says now', async () => {
  const kept = readdirSync(FOLDER).map(
    (name) => [name, readFileSync(new URL(name, FOLDER), 'utf8')] as const,
  );
  expect(new Map(kept)).toEqual(await generatedFiles());
});

test.each([
  ['a path and a query', { parameters: [inPath('id'), { name: 'id', in: 'query' }] }],
  ['a path and a body', { parameters: [inPath('id')], requestBody: taking('id') }],
])('an operation with the same name in %s is not generated', (_what, operation) => {
  expect(() => operationsFile(documentOf(operation))).toThrow('has two fields by the name id');
});

test('nor one with a query and a body, between which a field could not choose', () => {
  const operation = { parameters: [{ name: 'limit', in: 'query' }], requestBody: taking('name') };
  expect(() => operationsFile(documentOf(operation))).toThrow('has a query and a body');
});

function documentOf(operation: object) {
  const whole = { operationId: 'change', summary: 'Change', responses: {}, ...operation };
  return {
    openapi: '3.1.1',
    info: {},
    components: { schemas: {} },
    paths: { '/v1/things/{id}': { post: whole } },
  };
}

function inPath(name: string) {
  return { name, in: 'path' };
}

function taking(name: string) {
  return { content: { 'application/json': { schema: { properties: { [name]: {} } } } } };
}
