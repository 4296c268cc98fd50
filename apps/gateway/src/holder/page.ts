import { createHash } from 'node:crypto';
import { errorBody, type LastCall, LIMIT_NAMES, limitKind, type Refusal, showLimits } from '@presign/schema';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import { html, raw } from 'hono/html';
import type { GatewayEnv } from '../call-deps.ts';
import { answerHeaders } from '../http/headers.ts';
import type { Live } from './read-live.ts';

/** HTML in which every text is escaped. */
export type Html = ReturnType<typeof html>;

/**
 * Whether a browser asks for a page of its URL. All other clients get JSON: `Accept` must contain `text/html` before the types that
 * programs request.
 */
export const asksForPage = (c: Context<GatewayEnv>): boolean =>
  accepts(c, {
    header: 'Accept',
    supports: [JSON_TYPE, 'text/event-stream', HTML_TYPE],
    default: JSON_TYPE,
  }) === HTML_TYPE;

const JSON_TYPE = 'application/json';
const HTML_TYPE = 'text/html';

/**
 * Answers with a page that a holder reads. It needs no script. Its examples do not contain the URL, so a screenshot reveals no secret.
 * @param origin the only origin whose pages may read the answer, if the URL is bound
 */
export async function pageAnswer(
  title: string,
  content: Html,
  { origin, status = 200 }: { readonly origin?: string | undefined; readonly status?: number } = {},
): Promise<Response> {
  const text = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${raw(STYLE)}</style>
</head>
<body><main><h1>${title}</h1>${content}</main></body>
</html>
`;
  return new Response(String(text), { status, headers: { ...answerHeaders(origin), ...PAGE_HEADERS } });
}

/**
 * The page of a refusal.
 * @param json the refusal that a program gets; the page keeps its status and headers
 */
export async function refusalPage(refusal: Refusal, json: Response, requestId: string): Promise<Response> {
  const { code, message } = errorBody(refusal, requestId).error;
  const content = html`<p>${message}</p><dl>${fact('Code', code)}${fact('Request id', requestId)}</dl>`;
  const page = await pageAnswer('This URL was refused', content, { status: json.status });
  const headers = new Headers(json.headers);
  for (const [name, value] of Object.entries(PAGE_HEADERS)) headers.set(name, value);
  return new Response(page.body, { status: json.status, headers });
}

/** One line of a list of facts. */
export const fact = (name: string, value: string | Html): Html =>
  html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

/**
 * A text that a reader copies. It is a field, because "select all" then selects exactly its text, by keyboard and on a phone. Copying needs
 * no script.
 */
export const code = (name: string, text: string): Html =>
  html`<h3>${name}</h3><textarea readonly spellcheck="false" rows="${rowsOf(text)}" aria-label="${name}">${text}</textarea>`;

/** The lines of a text on a page of its full width. */
const rowsOf = (text: string): number =>
  text.split('\n').reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / LINE_CHARS)), 0);

const LINE_CHARS = 80;

const STYLE = `
:root { color-scheme: light dark }
body { margin: 0; background: light-dark(#fff, #14161a); color: light-dark(#1c2129, #dfe3ea); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.5rem; overflow-wrap: anywhere }
h2 { margin-top: 2rem; font-size: 1.15rem }
h3 { margin: 1.2rem 0 0.3rem; font-size: 1rem; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 0.75rem; margin: 1rem 0 }
dl > div, textarea { padding: 0.6rem 0.8rem; background: light-dark(#f5f6f8, #1c1f25); border: 1px solid light-dark(#d5d9e0, #343a45); border-radius: 8px }
dt { color: light-dark(#525c6a, #9aa4b4); font-size: 0.875rem }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums }
textarea { box-sizing: border-box; width: 100%; field-sizing: content; resize: vertical; color: inherit }
code, textarea { font: 0.875em/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
a { color: light-dark(#1a56c4, #7fb0ff) }
:focus-visible { outline: 2px solid light-dark(#1a56c4, #7fb0ff); outline-offset: 2px }
`;

/** The page loads nothing, runs nothing, cannot be framed, and has an opaque origin (HTML standard §7.1.5). */
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    'sandbox',
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'x-robots-tag': 'noindex, nofollow',
};

/** Says what is left of a URL, and when it ends. */
export function liveFacts({ own, visible, isRevoked, endsMs }: Live): Html {
  const { maxUses, used, costLimitMicrousd, settledMicrousd, heldMicrousd, lastCall } = own;
  const last = lastCall === undefined ? undefined : (JSON.parse(lastCall) as LastCall);
  return html`<h2>What is left</h2><dl>${[
    fact('State', isRevoked ? 'revoked: every call is refused' : 'live'),
    fact('Ends', utc(endsMs)),
    fact('Calls', maxUses === null ? `${count(used)} made, no limit` : left(maxUses, used, count)),
    fact(
      'Money',
      costLimitMicrousd === null
        ? `${dollars(settledMicrousd)} spent, no limit`
        : left(costLimitMicrousd, settledMicrousd + heldMicrousd, dollars),
    ),
    ...(heldMicrousd > 0 ? [fact('Held by calls under way', dollars(heldMicrousd))] : []),
    ...rates(own),
    ...(last
      ? [fact('The last call failed', `status ${last.status}, ${last.code}, ${utc(last.at * 1000)}`)]
      : []),
  ]}</dl>${visible.map(budgetFacts)}`;
}

/** Says what is left of a budget that the URL shares with others, and when it resets. */
const budgetFacts = (budget: Live['visible'][number]): Html =>
  html`<h3>A budget of this URL and others</h3><dl>${[
    ...(budget.maxUses === null ? [] : [fact('Calls', left(budget.maxUses, budget.used, count))]),
    ...(budget.costLimitMicrousd === null
      ? []
      : [
          fact(
            'Money',
            left(budget.costLimitMicrousd, budget.settledMicrousd + budget.heldMicrousd, dollars),
          ),
        ]),
    ...(budget.tokenLimit === null
      ? []
      : [fact('Tokens', left(budget.tokenLimit, budget.tokens + budget.tokensHeld, count))]),
    ...(budget.endsMs === undefined ? [] : [fact('Resets', utc(budget.endsMs))]),
  ]}</dl>`;

const left = (most: number, used: number, show: (value: number) => string) =>
  `${show(Math.max(0, most - used))} of ${show(most)} left`;

/** The limits that are not totals over the life of the URL. */
function rates(own: Live['own']): Html[] {
  const limits = showLimits(own);
  return LIMIT_NAMES.flatMap((name) => {
    const most = limits[name];
    if (name === 'max_uses' || name === 'cost_limit' || most === null) return [];
    const { rate } = limitKind(name);
    if (!rate) return [fact('Calls at once', `at most ${count(most)}`)];
    return [
      fact(
        rate.unit === undefined ? 'Rate limit' : `Rate limit in ${rate.unit}`,
        `${count(most)} ${rate.each}`,
      ),
    ];
  });
}

const utc = (ms: number): Html => {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')} UTC</time>`;
};

const count = (value: number): string => value.toLocaleString('en-US');

/** Microdollars as dollars with all their digits, at least two of them after the point. */
function dollars(microusd: number): string {
  const part = String(microusd % 1_000_000).padStart(6, '0');
  return `$${count(Math.floor(microusd / 1_000_000))}.${part.replace(/0{1,4}$/, '')}`;
}
