import type { McpPresignAnswer, PresignAnswer } from '@presign/client';
import { useQuery, useQueryClient } from '@tanstack/preact-query';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ISSUER, presign } from '../api/api.ts';
import { short } from '../data/format/format.ts';
import { Secret } from '../parts/forms/action.tsx';
import { Answer, Failed, Page } from '../parts/page/answer.tsx';
import { Facts, When } from '../parts/page/facts.tsx';
import { href, hrefOf } from '../parts/page/place.ts';
import { BundleSettings, Code } from './code.tsx';
import { Fields } from './fields.tsx';
import { Forecast } from './forecast.tsx';
import './issue.css';
import { Picks, usePicks } from './picks.tsx';
import { Playground } from './playground.tsx';
import { inlined, readRequest, type Schema, type Texts } from './schema.ts';
import { Variable } from './write-code.ts';

/** A way to issue: its method of the client, and its name here. */
const WAYS = [
  { id: '', method: 'presign', name: 'A URL for an LLM provider' },
  { id: 'mcp', method: 'mcpPresign', name: 'A bundle of MCP servers' },
] as const;

type Way = (typeof WAYS)[number];

/** Issues a URL or a bundle, and shows the code that does the same. All of it is discarded when the user leaves the page. */
export function Issue({ id }: { id: string }) {
  const way = WAYS.find((each) => each.id === id) ?? WAYS[0];
  return (
    <Page title="Issue a URL">
      <nav aria-label="Ways to issue">
        <ul>
          {WAYS.map((each) => (
            <li key={each.id}>
              <a
                href={href(each.id === '' ? 'issue' : `issue/${each.id}`)}
                aria-current={each === way ? 'page' : undefined}
              >
                {each.name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Answer of={useDocument()}>{(document) => <Form way={way} {...operationOf(document, way)} />}</Answer>
    </Page>
  );
}

type Operation = { readonly path: string; readonly schema: Schema };

/** The OpenAPI document of this issuer, as far as it matters here. */
type Document = {
  readonly paths: Readonly<Record<string, { readonly post?: { readonly operationId: string } & Body }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};
type Body = {
  readonly requestBody?: {
    readonly content: { readonly 'application/json': { readonly schema: { readonly $ref?: string } } };
  };
};

const useDocument = () =>
  useQuery({
    queryKey: ['openapi'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async (): Promise<Document> => {
      const answer = await fetch(`${ISSUER}/openapi.json`);
      if (!answer.ok) throw new Error(`The issuer answered ${answer.status}.`);
      return (await answer.json()) as Document;
    },
  });

function operationOf({ paths, components }: Document, { method }: Way): Operation {
  const [path = '', item] = Object.entries(paths).find(([, each]) => each.post?.operationId === method) ?? [];
  const name = item?.post?.requestBody?.content['application/json'].schema.$ref?.split('/').at(-1) ?? '';
  return { path, schema: inlined(components.schemas[name] ?? {}, components.schemas) };
}

type Issued = { readonly request: Readonly<Record<string, unknown>> } & (
  | { readonly url: PresignAnswer }
  | { readonly bundle: McpPresignAnswer }
);

const NO_PICKS = {};

/** Only this component has the entered secrets and the issued URL. A cache would keep them after the user leaves the page. */
function Form({ way, path, schema }: { way: Way } & Operation) {
  const client = useQueryClient();
  const [texts, setTexts] = useState<Texts>(new Map());
  const [issued, setIssued] = useState<Issued>();
  const [error, setError] = useState<Error>();
  const picks = usePicks(texts);
  const [isPending, setPending] = useState(false);
  const result = useRef<HTMLHeadingElement>(null);
  useEffect(() => result.current?.focus(), [issued]);
  const send = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    setPending(true);
    setError(undefined);
    setIssued(undefined);
    try {
      setIssued(
        await issue(
          way,
          readRequest(schema, textsIn(form), (_name, text) => text),
        ),
      );
      await client.invalidateQueries({ queryKey: ['urls'] });
    } catch (cause) {
      setError(cause as Error);
      focusField(form, cause);
    } finally {
      setPending(false);
    }
  };
  const [example] = (schema.examples ?? []) as Record<string, unknown>[];
  const shown = readRequest(schema, texts, (name) => new Variable(name));
  return (
    <>
      <div class="issue">
        <Entry isPending={isPending} send={send} follow={setTexts}>
          <Picks.Provider value={way.method === 'presign' ? picks : NO_PICKS}>
            <Fields of={schema} example={example} texts={texts} />
          </Picks.Provider>
          {error && <Failed error={error} />}
        </Entry>
        <div class="beside">
          {way.method === 'presign' && <Forecast request={shown} />}
          <section aria-label="The same as code">
            <h2>The same as code</h2>
            <Code of={{ path, method: way.method, body: shown }} />
          </section>
        </div>
      </div>
      {issued && (
        <section aria-label="The result">
          <h2 ref={result} tabIndex={-1}>
            Issued
          </h2>
          <Result of={issued} />
        </section>
      )}
    </>
  );
}

type EntryProps = {
  readonly isPending: boolean;
  readonly send: (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => unknown;
  readonly follow: (texts: Texts) => void;
  readonly children: ComponentChildren;
};

function Entry({ isPending, send, follow, children }: EntryProps) {
  const form = useRef<HTMLFormElement>(null);
  const read = () => form.current && follow(textsIn(form.current));
  return (
    <form ref={form} autocomplete="off" onInput={read} onSubmit={send} aria-label="The request">
      {children}
      <p class="buttons">
        <button type="submit" class="main" disabled={isPending}>
          Issue
        </button>
      </p>
    </form>
  );
}

const textsIn = (form: HTMLFormElement): Texts =>
  new Map(Array.from(new FormData(form), ([name, value]) => [name, String(value)]));

/** The issuer validates the input, and its answer names the wrong field. */
function focusField(form: HTMLFormElement, cause: unknown): void {
  const { param } = cause as { readonly param?: unknown };
  const field = typeof param === 'string' ? form.elements.namedItem(param) : null;
  if (!(field instanceof HTMLElement)) return;
  for (let fold = field.closest('details'); fold; fold = fold.parentElement?.closest('details') ?? null)
    fold.open = true;
  field.focus();
}

async function issue({ method }: Way, request: Record<string, unknown>): Promise<Issued> {
  if (method === 'presign') return { request, url: await presign.presign(request as never) };
  return { request, bundle: await presign.mcpPresign(request as never) };
}

function Result({ of }: { of: Issued }) {
  const {
    session_id: session,
    expires_at: end,
    grant_id: grant,
    warnings = [],
  } = 'url' in of ? of.url : of.bundle;
  return (
    <>
      {'url' in of ? (
        <Secret label="The URL" value={of.url.url} />
      ) : (
        <Secret label="The URL of the bundle" value={of.bundle.bundle_url} />
      )}
      {warnings.map((each) => (
        <p key={each.message} role="alert" class="failed">
          <b>{each.code}</b>: {each.message}
        </p>
      ))}
      <Facts
        of={[
          [
            'URL',
            <a key="url" href={hrefOf('urls/url', grant)}>
              {short(grant)}
            </a>,
          ],
          [
            'Session',
            <a key="session" href={hrefOf('urls', session)}>
              {short(session)}
            </a>,
          ],
          ['Ends', <When key="ends" at={end} />],
        ]}
      />
      {'url' in of ? (
        <Playground key={of.url.grant_id} issued={of.url} request={of.request} />
      ) : (
        <BundleSettings key={of.bundle.grant_id} bundle={of.bundle} />
      )}
    </>
  );
}
