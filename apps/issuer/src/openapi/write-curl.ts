import type { Operation, Parameter } from './describe-operation.ts';
import type { JsonSchema } from './json-schema.ts';

/** A request of an operation, as it is asked by hand. Path parameters and the API key are variables of the shell. */
export function writeCurl(
  server: string,
  place: { readonly path: string; readonly method: string },
  { parameters = [], security }: Operation,
  body: JsonSchema | undefined,
): string {
  const path = place.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  const lines = [
    `curl${place.method === 'get' ? '' : ` -X ${place.method.toUpperCase()}`} "${server}${path}${queryOf(parameters)}"`,
    ...(security.length > 0 ? ['-H "Authorization: Bearer $PRESIGN_API_KEY"'] : []),
    ...(body
      ? [
          "-H 'Content-Type: application/json'",
          `-d ${quoted(JSON.stringify(exampleOf(body) ?? {}, null, 2))}`,
        ]
      : []),
  ];
  return lines.join(' \\\n  ');
}

/** What a schema gives as its first example. */
export const exampleOf = ({ examples }: JsonSchema): unknown =>
  Array.isArray(examples) ? examples[0] : undefined;

function queryOf(parameters: readonly Parameter[]): string {
  const needed = parameters.filter(
    (each) => each.in === 'query' && (each.required || exampleOf(each.schema)),
  );
  if (needed.length === 0) return '';
  return `?${new URLSearchParams(needed.map(({ name, schema }): [string, string] => [name, String(exampleOf(schema))]))}`;
}

/** As a POSIX shell takes it to the letter. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
