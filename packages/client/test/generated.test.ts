import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { generatedFiles } from '../generate/generated-files.ts';
import { operationsFile } from '../generate/operations-file.ts';

const PACKAGES = new URL('../../', import.meta.url);

test('the generated code is up to date with docs/reference/openapi.json', async () => {
  const generated = await generatedFiles();
  const folders = new Set(Array.from(generated.keys(), dirname));
  const kept = Array.from(folders, (folder) =>
    readdirSync(new URL(folder, PACKAGES), { withFileTypes: true })
      .filter((each) => each.isFile())
      .map(
        ({ name }) =>
          [`${folder}/${name}`, readFileSync(new URL(`${folder}/${name}`, PACKAGES), 'utf8')] as const,
      ),
  ).flat();
  const marked = kept.filter(([, text]) => /^(#|\/\/) Generated /.test(text));
  expect(new Map(marked)).toEqual(generated);
});

test.each([
  ['a path and a query', { parameters: [inPath('id'), { name: 'id', in: 'query' }] }],
  ['a path and a body', { parameters: [inPath('id')], requestBody: taking('id') }],
])('generation fails for an operation with a duplicate name in %s', (_what, operation) => {
  expect(() => operationsFile(documentOf(operation))).toThrow('has two fields by the name id');
});

test('generation fails for an operation with both a query and a body, because a field could belong to either', () => {
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
