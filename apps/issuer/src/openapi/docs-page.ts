import { createHash } from 'node:crypto';
import type { Hono } from 'hono';
import { html, raw } from 'hono/html';
import type { IssuerDeps, IssuerEnv } from '../deps.ts';
import { describeApi, type OpenApi } from './describe-api.ts';
import type { Operation, Parameter } from './describe-operation.ts';
import type { Response } from './describe-refusals.ts';
import { exampleOf, type JsonSchema } from './json-schema.ts';
import { type Html, inline, prose, resolve, showField, showFields } from './show-schema.ts';

/** `/openapi.json`: the OpenAPI document. `/docs`: the same as a page for people. Neither needs an API key. */
export function reference(app: Hono<IssuerEnv>, { issuerUrl }: IssuerDeps): void {
  // Made on the first request, because few issuers get one.
  let made: OpenApi | undefined;
  const api = () => {
    made ??= describeApi(issuerUrl);
    return made;
  };
  app.get('/openapi.json', (c) => c.json(api()));
  app.get('/docs', (c) => {
    c.header('content-security-policy', DOCS_POLICY);
    return c.html(docsPage(api()));
  });
}

/** The reference page of the API. It is complete in itself: no scripts, no fonts, nothing from other servers. */
const docsPage = (api: OpenApi): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${api.info.title} API</title>
<style>${raw(PAGE_STYLE)}</style>
</head>
<body>
<nav aria-label="Operations"><strong>${api.info.title} API</strong>
  <ul><li><a href="#events">Events</a></li><li><a href="#errors">Errors</a></li><li><a href="openapi.json">OpenAPI document</a></li></ul>
  ${subjectsOf(api).map(showLinks)}
</nav>
<main>
  <h1>${api.info.title} API</h1>
  ${prose(api.info.description)}
  ${subjectsOf(api).map(
    ({ tag, operations }) =>
      html`<h2>${tag}</h2>${operations.map(({ place, operation }) => showOperation(api, place, operation))}`,
  )}
  ${showEvents(api)}
  ${showEnvelope(api)}
</main>
</body>
</html>`;

type Placed = { readonly place: Place; readonly operation: Operation };
type Subject = { readonly tag: string; readonly operations: readonly Placed[] };

/** Operations by their tags, both in the order of the document. */
function subjectsOf({ paths }: OpenApi): Subject[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ place: { path, method }, operation })),
  );
  const tags = [...new Set(all.map(({ operation }) => operation.tags[0] ?? ''))];
  return tags.map((tag) => ({ tag, operations: all.filter(({ operation }) => operation.tags[0] === tag) }));
}

const showLinks = ({ tag, operations }: Subject): Html => html`<h2>${tag}</h2>
  <ul>${operations.map(
    ({ place, operation }) =>
      html`<li><a href="#${operation.operationId}"><span class="method ${place.method}">${place.method.toUpperCase()}</span> ${place.path}</a></li>`,
  )}</ul>`;

function showEvents({ webhooks, components: { schemas } }: OpenApi): Html {
  const [first] = Object.values(webhooks);
  return html`<h2 id="events">Events</h2>
    <p>The issuer sends events to your webhooks by <code>POST</code>, following Standard Webhooks. Answer with any 2xx
    status within ten seconds. Otherwise the event is sent again, at growing intervals.</p>
    <h4>Headers</h4>
    <ul class="fields">${first?.post.parameters.map(({ schema, description, ...rest }) =>
      showField({ ...rest, schema: { ...schema, description } }, schemas, 'answer'),
    )}</ul>
    ${Object.entries(webhooks).map(
      ([type, { post }]) => html`<section id="${type}">
        <h3><a href="#${type}">${type}</a></h3>
        ${prose(post.summary)}
        ${showFields(post.requestBody.content['application/json'].schema, schemas, 'answer')}
      </section>`,
    )}`;
}

function showEnvelope({ components: { schemas } }: OpenApi): Html {
  return html`<h2 id="errors">Errors</h2>
    <p>All errors have the same body. Some codes add fields to <code>error</code>.</p>
    ${showFields(schemas.Error ?? {}, schemas, 'answer')}`;
}

/** The style of the page. It follows the reader's choice of light or dark. */
const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --back: light-dark(#ffffff, #14161a); --panel: light-dark(#f5f6f8, #1c1f25); --line: light-dark(#dfe2e7, #2e333c);
  --text: light-dark(#1c2129, #dfe3ea); --soft: light-dark(#5a6472, #98a2b1); --link: light-dark(#1a56c4, #7fb0ff);
  --get: light-dark(#156c43, #5fd39b); --post: light-dark(#1a56c4, #7fb0ff); --delete: light-dark(#b3261e, #ff9087);
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.55 system-ui, sans-serif;
  display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1.25rem; background: var(--panel);
  border-right: 1px solid var(--line); font-size: .875rem; }
nav strong { font-size: 1.05rem; } nav h2 { margin: 1.25rem 0 .25rem; font-size: .75rem; color: var(--soft);
  text-transform: uppercase; letter-spacing: .05em; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; align-items: baseline; overflow-wrap: anywhere; padding: .2rem 0; color: var(--text); text-decoration: none; }
nav li a:hover { color: var(--link); }
main { max-width: 54rem; padding: 2rem 2.5rem 6rem; }
h1 { margin: 0 0 .5rem; font-size: 1.9rem; } main > h2 { margin: 3.5rem 0 0; font-size: 1.45rem; }
h3 { margin: 0; font-size: 1.2rem; } h4 { margin: 1.75rem 0 .5rem; font-size: 1rem; }
h3 a { color: inherit; text-decoration: none; } h3 a:hover { text-decoration: underline; }
a { color: var(--link); } p { margin: .5rem 0; }
section { margin-top: 1.5rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
code, pre { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
p code, td code { padding: .1em .3em; border-radius: 4px; background: var(--panel); overflow-wrap: anywhere; }
pre { margin: 1rem 0; padding: .9rem 1.1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; }
pre code { user-select: all; font-size: .8125rem; }
.route code { font-size: 1rem; background: none; padding: 0; }
.method { display: inline-block; min-width: 3.1rem; margin-right: .35rem; font: 700 .75rem ui-monospace, monospace; }
.method.get { color: var(--get); } .method.post { color: var(--post); } .method.delete { color: var(--delete); }
nav .method { flex: none; min-width: 2.9rem; margin: 0; font-size: .625rem; }
.status { color: var(--get); }
.fields { list-style: none; margin: 0; padding: 0; }
.fields li { padding: .6rem 0; border-top: 1px solid var(--line); }
.fields li:first-child { border-top: 0; }
.fields p { margin: .15rem 0 0; font-size: .9375rem; color: var(--soft); }
.field { overflow-wrap: anywhere; }
.name { font-weight: 700; } .type, .fact { font-size: .8125rem; color: var(--soft); }
.fact { margin-left: .3rem; } .fact::before { content: '· '; }
.required { font-size: .75rem; font-weight: 600; color: var(--delete); }
details { margin-top: .4rem; } summary { cursor: pointer; font-size: .875rem; color: var(--link); }
details > .fields { margin-top: .25rem; padding-left: 1rem; border-left: 2px solid var(--line); }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .45rem .75rem .45rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
tr:first-child > * { border-top: 0; }
th { width: 3.5rem; font-weight: 600; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media (max-width: 52rem) {
  body { grid-template-columns: minmax(0, 1fr); }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1.5rem 1.25rem 4rem; }
}
`;

/** The browser may apply this one style (CSP 3 §2.3.1: by its hash), and load or run nothing else. */
const DOCS_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(PAGE_STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** The path and method of an operation. */
type Place = { readonly path: string; readonly method: string };

/** One operation on the page: its description, a curl command, parameters, body, answer and errors. */
function showOperation(api: OpenApi, place: Place, operation: Operation): Html {
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
  return html`${otherTypes(content).map((type) => html`<p>JSON, or <code>${type}</code> if you ask for it.</p>`)}
    ${showFields(schema, schemas, 'answer')}
    ${example === undefined ? '' : html`<pre><code>${JSON.stringify(example, null, 2)}</code></pre>`}`;
}

const otherTypes = (content: object) => Object.keys(content).filter((type) => type !== 'application/json');

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
