import type { Api, Operation, Schema } from './api.ts';

/** A table of all operations, with the facts that the client needs to send one. */
export function operationsFile(api: Api): string {
  const operations = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const summaries = operations.map(
    ({ operation: { operationId, summary } }) =>
      `  /** ${summary}. */\n  readonly ${operationId}: Operation;`,
  );
  const entries = operations.map(({ path, method, operation }) => entryOf(api, path, method, operation));
  return `/** The facts that the client needs to send an operation. */
export type Operation = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path, with its parameters in braces. */
  readonly path: string;
  /** The place of the fields that are not in the path. */
  readonly fields: 'body' | 'query';
  /** Whether it accepts an \`Idempotency-Key\`. */
  readonly idempotencyKey: boolean;
};

export type Operations = {
${summaries.join('\n')}
};

export const OPERATIONS: Operations = {
${entries.join('\n')}
};
`;
}

function entryOf(api: Api, path: string, method: string, operation: Operation): string {
  mustBeFlat(api, operation);
  const own = {
    method: method.toUpperCase(),
    path,
    fields: operation.requestBody ? 'body' : 'query',
    idempotencyKey: namesIn(operation, 'header').includes('Idempotency-Key'),
  };
  return `  ${operation.operationId}: ${JSON.stringify(own)},`;
}

/** A method takes one object, so a name must have one meaning and one place. */
function mustBeFlat(api: Api, operation: Operation): void {
  const inPath = namesIn(operation, 'path');
  const inQuery = namesIn(operation, 'query');
  const schema = operation.requestBody?.content['application/json'].schema;
  const inBody = Object.keys(schema ? propertiesOf(api, schema) : {});
  const twice = inPath.filter((name) => inQuery.includes(name) || inBody.includes(name));
  if (twice.length > 0) throw new Error(`${operation.operationId} has two fields by the name ${twice}`);
  if (schema && inQuery.length > 0) throw new Error(`${operation.operationId} has a query and a body`);
}

const namesIn = ({ parameters = [] }: Operation, place: string): string[] =>
  parameters.filter((each) => each.in === place).map(({ name }) => name);

function propertiesOf(api: Api, schema: Schema): Readonly<Record<string, Schema>> {
  const name = schema.$ref?.split('/').at(-1);
  const { properties } = name === undefined ? schema : (api.components.schemas[name] ?? {});
  // The fields of a union are not known.
  if (!properties) throw new Error('a body must be an object');
  return properties;
}
