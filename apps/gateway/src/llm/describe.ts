import type { IncomingMessage } from 'node:http';
import { pricingOf, socketOf } from '@presign/providers';
import { type GrantStatus, type LastCall, type Refusal, showLimits } from '@presign/schema';
import type { Context, Handler } from 'hono';
import { html } from 'hono/html';
import type { GatewayEnv } from '../call-deps.ts';
import { CallReport } from '../call-report.ts';
import { boundOrigin } from '../grant/bind.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant, Verified } from '../grant/verify.ts';
import { asksForPage, code, fact, type Html, liveFacts, pageAnswer, refusalPage } from '../holder/page.ts';
import { type Live, readForHolder } from '../holder/read-live.ts';
import { type Example, type ExampleCall, sdkExamples } from '../holder/sdk-examples.ts';
import { socketExamples } from '../holder/socket-examples.ts';
import { answerHeaders } from '../http/headers.ts';
import { refusalAnswer } from '../http/refuse.ts';
import { checkQuota } from '../share/read-quota.ts';
import type { LlmDeps } from './llm-deps.ts';
import { type CallUrl, match, splitUrl, verifyCall } from './match.ts';

/**
 * `GET /llm/t/<token>`, without a path, or `GET /llm` with the token in a header: the limits of the URL, and its uses and costs so far,
 * as JSON or as a page for a browser. It costs no use. It shows the URL's own limits and those of visible budgets, and not those of a virtual key's budget.
 */
export const describeGrant =
  (deps: LlmDeps): Handler<GatewayEnv> =>
  (c) =>
    describe(deps, c, readUrl(deps, c));

/** Answers a browser that opens an issued URL with its page, unless the URL allows this GET as a call. It costs no use. */
export const describeIssued =
  (deps: LlmDeps): Handler<GatewayEnv> =>
  (c, next) => {
    if (!asksForPage(c)) return next();
    const asked = readUrl(deps, c);
    const { url, verified } = asked;
    // A browser sends HEAD as it sends GET.
    const isCall = 'grant' in verified && 'target' in match(verified.grant, 'GET', url.path, url.query);
    return isCall ? next() : describe(deps, c, asked);
  };

/** A URL whose status is requested, and the content of its token. */
type Asked = { readonly url: CallUrl; readonly verified: Verified<LlmGrant> };

function readUrl({ verify }: LlmDeps, { env }: Context<GatewayEnv>): Asked {
  const { url: target = '', headers } = env.incoming as IncomingMessage;
  const url = splitUrl(target);
  return { url, verified: verifyCall(verify, url, headers) };
}

async function describe(deps: LlmDeps, c: Context<GatewayEnv>, { verified }: Asked): Promise<Response> {
  const incoming = c.env.incoming as IncomingMessage;
  const report = new CallReport('describe', c.get('requestId'), incoming);
  const { requestId } = report;
  let refusal: Refusal | undefined = { code: 'internal_error' };
  try {
    const found = await findStatus(deps, report, incoming, verified);
    refusal = 'refusal' in found ? found.refusal : undefined;
    if ('refusal' in found) {
      const json = refusalAnswer(found.refusal, requestId);
      return asksForPage(c) ? await refusalPage(found.refusal, json, requestId) : json;
    }
    const { grant, policy, live } = found;
    const origin = boundOrigin(policy, incoming.headers);
    if (asksForPage(c))
      return await pageAnswer(`A URL for ${grant.provider.id}`, llmPage(deps, found), { origin });
    return c.json(toStatus(grant, live, openSockets(deps, grant)), 200, {
      ...answerHeaders(origin),
      'cache-control': 'no-store',
    });
  } finally {
    deps.report(report, refusal);
  }
}

type Shown = { readonly grant: LlmGrant; readonly policy: Policy; readonly live: Live };
type Found = Shown | { readonly refusal: Refusal };

async function findStatus(
  deps: LlmDeps,
  report: CallReport,
  incoming: IncomingMessage,
  verified: Verified<LlmGrant>,
): Promise<Found> {
  report.grant = 'grant' in verified ? verified.grant : verified.signed;
  const spent = checkQuota(deps.readQuota, report.grant);
  if (spent) return { refusal: spent };
  if ('refusal' in verified) return verified;
  report.provider = verified.grant.provider.id;
  const begun = deps.freeWork.begin(verified.grant.id, 1, true);
  if ('refusal' in begun) return begun;
  return readForHolder(deps, report, incoming, verified.grant).finally(begun.end);
}

/** How many sockets of a URL are open at this gateway. Null: the URL allows no sockets. */
const openSockets = ({ sockets }: LlmDeps, { id, hasSockets }: LlmGrant): number | null =>
  hasSockets ? sockets.openOf(id) : null;

const toStatus = (
  grant: LlmGrant,
  { own, visible, isRevoked, endsMs }: Live,
  open: number | null,
): GrantStatus => ({
  provider: grant.provider.id,
  method: grant.method,
  paths: [...grant.paths],
  session_id: grant.sessionId,
  expires_at: endsMs / 1000,
  revoked: isRevoked,
  ...showLimits(own),
  used: own.used,
  spent: own.settledMicrousd,
  held: own.heldMicrousd,
  open_sockets: open,
  last_call: own.lastCall === undefined ? null : (JSON.parse(own.lastCall) as LastCall),
  budgets: visible.map((budget) => ({
    max_uses: budget.maxUses,
    used: budget.used,
    cost_limit: budget.costLimitMicrousd,
    spent: budget.settledMicrousd,
    held: budget.heldMicrousd,
    tokens: budget.tokenLimit,
    tokens_used: budget.tokens,
    resets_at: budget.endsMs === undefined ? null : budget.endsMs / 1000,
  })),
});

/** The page of an LLM URL: the same facts as its JSON, the models and conditions that a refusal would name, and how to call it. */
const llmPage = (deps: LlmDeps, { grant, policy, live }: Shown): Html =>
  html`<p>It calls ${grant.provider.id} for you, without a key. The address of this page is a secret: whoever has it can use it.</p>
${liveFacts(live)}
<h2>What it allows</h2>
<dl>${allowed(grant, policy, openSockets(deps, grant))}</dl>
<h2>How to use it</h2>
<p>Set the environment variable <code>PRESIGN_URL</code> to the address of this page up to the end of its token: <code>…/llm/t/TOKEN</code>, without a path and without a slash at its end. Answers have the headers of the limits, and refusals say why.</p>
${examplesOf(deps, grant, policy).map((each) => code(each.name, each.code))}`;

function allowed(
  { provider, method, paths }: LlmGrant,
  { models, conditions }: Policy,
  open: number | null,
): Html[] {
  const { max_body_bytes: bytes, allowed_fields: fields, bind } = conditions ?? {};
  return [
    fact('Provider', provider.id),
    fact(paths.length === 1 ? 'Path' : 'Paths', `${method} ${paths.join(', ')}`),
    fact('Models', models ? models.join(', ') : 'all'),
    ...(bytes === undefined ? [] : [fact('Body', `at most ${bytes.toLocaleString('en-US')} bytes`)]),
    ...(fields ? [fact('Fields of the body', fields.join(', '))] : []),
    ...(open === null
      ? []
      : [
          fact(
            'Sockets',
            `it can also be opened as a WebSocket; each turn is a call; ${open} open at this gateway`,
          ),
        ]),
    ...(bind?.origins ? [fact('Only from pages of', bind.origins.join(', '))] : []),
    ...(bind?.ip_ranges ? [fact('Only from the addresses', bind.ip_ranges.join(', '))] : []),
  ];
}

/** Programs that call a URL, and programs that open it as a socket. Realtime has only sockets. */
function examplesOf(deps: LlmDeps, grant: LlmGrant, policy: Policy): readonly Example[] {
  const call = exampleOf(deps, grant, policy);
  const protocol = policy.conditions?.sockets && socketOf(grant.provider, call.path);
  if (!protocol) return sdkExamples(call);
  const usual = protocol === 'realtime' ? 'gpt-realtime' : 'gpt-4o-mini';
  const sockets = socketExamples(protocol, call.path, call.model ?? (call.serves(usual) ? usual : 'MODEL'));
  return protocol === 'realtime' ? sockets : [...sdkExamples(call), ...sockets];
}

/** The first path of a URL has no `*`. If the URL allows any model, the example uses one with a price. */
const exampleOf = (
  { prices, now }: LlmDeps,
  { method, paths, model, provider }: LlmGrant,
  { models }: Policy,
): ExampleCall => ({
  method,
  path: paths[0] ?? '',
  model: models?.[0] ?? model,
  serves: (name) => pricingOf(provider, name, { prices: prices.current(), now: now() }) !== undefined,
});
