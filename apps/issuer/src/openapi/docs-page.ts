import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';
import type { OpenApi } from './describe-api.ts';
import type { Operation } from './describe-operation.ts';
import { PAGE_STYLE } from './page-style.ts';
import { type Html, prose } from './prose.ts';
import { type Place, showOperation } from './show-operation.ts';
import { showField, showFields } from './show-schema.ts';

/** The API's reference page: whole by itself, without scripts, fonts or anything else from elsewhere. */
export const docsPage = (api: OpenApi): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${api.info.title} API</title>
<style>${raw(PAGE_STYLE)}</style>
</head>
<body>
<nav aria-label="Operations"><strong>${api.info.title} API</strong>
  <ul><li><a href="#events">Events</a></li><li><a href="#errors">Errors</a></li><li><a href="/openapi.json">OpenAPI document</a></li></ul>
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

/** What a browser may do with the page: show it in its own style (CSP 3 §2.3.1: by its hash), and nothing else. */
export const DOCS_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(PAGE_STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

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
    <p>Sent by <code>POST</code> to your webhooks, as Standard Webhooks
    has it. Answer with any 2xx status within ten seconds; else it is sent again, at growing intervals.</p>
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
    <p>Every error has one body. Some codes have further fields in <code>error</code>.</p>
    ${showFields(schemas.Error ?? {}, schemas, 'answer')}`;
}
