import { type Dialect, dialectOf } from './dialects.ts';
import { readJson } from './schema.ts';

/** The head of an answer. */
export type Head = {
  readonly status: number;
  readonly requestId: string | null;
  /** Microdollars, if the answer says so: streams do not. */
  readonly cost: number | null;
  /** The code with which the gateway refused the call. */
  readonly code: string | null;
};

/** The figures of a URL, as `GET` on the URL without its path answers. Money is in microdollars. */
export type Left = {
  readonly used: number;
  readonly max_uses: number | null;
  readonly spent: number;
  readonly held: number;
  readonly cost_limit: number | null;
};

export type UrlCall = {
  /** The URL up to its token. */
  readonly base: string;
  readonly path: string;
  readonly method: string;
  /** JSON, or empty. */
  readonly body: string;
  readonly signal: AbortSignal;
  readonly onHead: (head: Head) => void;
  /** Gets each part of the answer's text when it arrives. */
  readonly onText: (text: string) => void;
};

/** Sends neither a referrer nor the cookie, because an issued URL is a secret and the gateway may share the issuer's origin. */
const SAFE = { credentials: 'omit', referrerPolicy: 'no-referrer', cache: 'no-store' } as const;

/** Splits an issued URL after its token. */
export function splitUrl(url: string): { readonly base: string; readonly path: string } {
  const [, base = '', path = ''] = /^(.*?\/llm\/t\/[^/?#]+)(.*)$/.exec(url) ?? [];
  return { base, path };
}

/**
 * Calls a URL as a holder does. Resolves when the answer has ended.
 * @throws Error that does not name the URL
 */
export async function callUrl({ base, path, method, body, signal, onHead, onText }: UrlCall): Promise<void> {
  const dialect = dialectOf(path);
  const answer = await ask(base, `${base}${path}${dialect?.query ?? ''}`, {
    method,
    signal,
    headers: { ...(body !== '' && { 'content-type': 'application/json' }), ...dialect?.headers },
    ...(body !== '' && { body }),
  });
  onHead(headOf(answer));
  const type = answer.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream')) return readStream(answer, dialect, onText);
  if (!/json|text/.test(type)) return onText(`${type}, ${(await answer.arrayBuffer()).byteLength} bytes`);
  const text = await answer.text();
  const json = readJson(text);
  onText(json === undefined ? text : JSON.stringify(json, null, 2));
}

/** @throws Error that does not name the URL */
export async function readLeft(base: string): Promise<Left> {
  const answer = await ask(base, base, {});
  if (!answer.ok) throw new Error(`The gateway answered with status ${answer.status}.`);
  return (await answer.json()) as Left;
}

/** The document of a bundle for one client. */
export async function readFormat(bundleUrl: string, format: string): Promise<string> {
  const answer = await ask(bundleUrl, `${bundleUrl}?format=${format}`, {});
  if (!answer.ok) throw new Error(`The gateway answered with status ${answer.status}.`);
  const text = await answer.text();
  return answer.headers.get('content-type')?.includes('json')
    ? JSON.stringify(JSON.parse(text), null, 2)
    : text;
}

/** @throws Error that does not name the URL */
export const ask = (shown: string, url: string, init: RequestInit): Promise<Response> =>
  fetch(url, { ...init, ...SAFE }).catch((error: unknown) => {
    if (init.signal?.aborted) throw error;
    throw new Error(
      `No answer from ${new URL(shown).origin} that this page may read. The gateway may be down, or the URL is bound to other origins.`,
    );
  });

function headOf({ status, headers }: Response): Head {
  const cost = headers.get('x-presign-cost');
  const requestId = headers.get('x-presign-request-id');
  const code = headers.get('x-presign-code');
  return { status, requestId, cost: cost === null ? null : Number(cost), code };
}

/** The text of each event when it arrives. Streams of unknown APIs are shown unchanged. */
async function readStream({ body }: Response, dialect: Dialect | undefined, onText: UrlCall['onText']) {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!dialect) {
      onText(part.value);
      continue;
    }
    const lines = (rest + part.value).split('\n');
    rest = lines.pop() ?? '';
    onText(lines.map((line) => textOf(dialect, line)).join(''));
  }
}

/** Each event of these APIs has its data on one line. A line without text is shown only if it is an error. */
function textOf(dialect: Dialect, line: string): string {
  const event = readJson(/^data: ?(.*)$/.exec(line)?.[1] ?? '');
  if (typeof event !== 'object' || event === null) return '';
  return 'error' in event && event.error ? JSON.stringify(event) : (dialect.textOf(event) ?? '');
}
