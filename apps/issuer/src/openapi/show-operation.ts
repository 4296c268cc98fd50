import { html } from 'hono/html';
import type { OpenApi } from './describe-api.ts';
import type { Operation, Parameter } from './describe-operation.ts';
import type { Response } from './describe-refusals.ts';
import { exampleOf, type JsonSchema } from './json-schema.ts';
import { type Html, inline, prose, resolve, showField, showFields } from './show-schema.ts';

/** The path and method of an operation. */
export type Place = { readonly path: string; readonly method: string };

/** One operation on the page: its description, a curl command, parameters, body, answer and errors. */
export function showOperation(api: OpenApi, place: Place, operation: Operation): Html {
  const { operationId: id, summary, description } = operation;
  const body = operation.requestBody?.content['application/json'].schema;
  const read = body && resolve(body, api.components.schemas);
  const curl = writeCurl(api.servers[0]?.url ?? '', place, operation, read);
  return html`<section id="${id}">
    <h3><a href="#${id}">${summary}</a></h3>
    <p class="route"><span class="method ${place.method}">${place.method.toUpperCase()}</span> <code>${place.path}</code></p>
    ${prose(description)}
    <pre><code>${curl}</code></pre>
    ${showParameters(api, operation)}
    ${read ? html`<h4>Body</h4>${showFields(read, api.components.schemas, 'request')}` : ''}
    ${showAnswers(api, operation)}
  </section>`;
}

function showParameters({ components }: OpenApi, { parameters = [] }: Operation): Html {
  const places = { path: 'Path', query: 'Query', header: 'Headers' } as const;
  return html`${Object.entries(places).map(([place, title]) => {
    const those = parameters.filter((parameter) => parameter.in === place);
    if (those.length === 0) return '';
    return html`<h4>${title}</h4><ul class="fields">${those.map(({ name, required, description, schema }) =>
      showField(
        { name, required, schema: description === undefined ? schema : { ...schema, description } },
        components.schemas,
        'request',
      ),
    )}</ul>`;
  })}`;
}

function showAnswers({ components }: OpenApi, { responses }: Operation): Html {
  const all = Object.entries(responses);
  const answers = all.filter(([code]) => code < '300');
  const refused = all.filter(([code]) => code >= '300');
  return html`${answers.map(
    ([status, answer]) => html`<h4>Answer <span class="status">${status}</span></h4>
    ${showSuccess(components, answer as Response)}`,
  )}
    <h4>Errors</h4>
    <table>${refused.map(([code, response]) => showRefusal(code, response, components))}</table>`;
}

function showSuccess({ schemas }: OpenApi['components'], { content }: Response): Html {
  const json = content?.['application/json']?.schema;
  if (!json) return html`<p>No body.</p>`;
  const schema: JsonSchema = resolve(json, schemas);
  const example = exampleOf(schema);
  return html`${content['text/csv'] ? html`<p>JSON, or <code>text/csv</code> if you ask for it.</p>` : ''}
    ${showFields(schema, schemas, 'answer')}
    ${example === undefined ? '' : html`<pre><code>${JSON.stringify(example, null, 2)}</code></pre>`}`;
}

function showRefusal(
  status: string,
  response: Operation['responses'][string],
  { responses }: OpenApi['components'],
): Html {
  const name = '$ref' in response ? (response.$ref.split('/').at(-1) ?? '') : '';
  const { description } = 'description' in response ? response : (responses[name] ?? { description: '' });
  return html`<tr><th scope="row">${status}</th><td>${description
    .split('\n\n')
    .map((line) => html`<div>${inline(line)}</div>`)}</td></tr>`;
}

/** A curl command for an operation. Path parameters and the API key are shell variables. */
function writeCurl(
  server: string,
  place: Place,
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

function queryOf(parameters: readonly Parameter[]): string {
  const needed = parameters.filter(
    (each) => each.in === 'query' && (each.required || exampleOf(each.schema)),
  );
  if (needed.length === 0) return '';
  return `?${new URLSearchParams(needed.map(({ name, schema }): [string, string] => [name, String(exampleOf(schema))]))}`;
}

/** Quoted so that a POSIX shell takes the text literally. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
