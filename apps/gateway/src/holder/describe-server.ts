import type { IncomingMessage } from 'node:http';
import type { Refusal } from '@presign/schema';
import type { Context, Handler } from 'hono';
import { CallReport } from '../call-report.ts';
import type { GatewayEnv, McpDeps } from '../deps.ts';
import { boundOrigin } from '../grant/bind.ts';
import type { McpGrant } from '../grant/verify.ts';
import { bundleRefusalAnswer } from '../mcp/refuse.ts';
import { identify } from '../mcp/request.ts';
import { serverPage } from './mcp-page.ts';
import { asksForPage, type Html, pageAnswer, refusalPage } from './page.ts';
import { readForHolder } from './read-live.ts';

/** A browser that opens the URL of an MCP server: a page that says what it allows. Other requests go on. It costs no use. */
export function describeServer(deps: McpDeps): Handler<GatewayEnv> {
  return async (c, next) => {
    if (!asksForPage(c)) return next();
    const report = new CallReport('describe', c.get('requestId'), c.env.incoming as IncomingMessage);
    report.provider = 'mcp';
    let refusal: Refusal | undefined = { code: 'internal_error' };
    let status: number | undefined;
    try {
      const found = await findServer(deps, report, c);
      refusal = 'refusal' in found ? found.refusal : undefined;
      const answer = await ('refusal' in found
        ? refusalPage(found.refusal, bundleRefusalAnswer(found.refusal, report.requestId), report.requestId)
        : pageAnswer('The URL of an MCP server', found.page, found));
      status = answer.status;
      return answer;
    } finally {
      deps.report(report, refusal, status);
    }
  };
}

type Found = { readonly page: Html; readonly origin: string | undefined } | { readonly refusal: Refusal };

async function findServer(deps: McpDeps, report: CallReport, c: Context<GatewayEnv>): Promise<Found> {
  const incoming = c.env.incoming as IncomingMessage;
  // A browser sends HEAD as it sends GET.
  const identified = identify(deps, { url: incoming.url, method: 'GET', headers: incoming.headers });
  report.grant = 'refusal' in identified ? identified.signed : identified.grant;
  if ('refusal' in identified) return identified;
  const begun = deps.freeWork.begin(identified.grant.id, 1, true);
  if ('refusal' in begun) return begun;
  return readServer(deps, report, incoming, identified.grant).finally(begun.end);
}

async function readServer(
  deps: McpDeps,
  report: CallReport,
  incoming: IncomingMessage,
  grant: McpGrant,
): Promise<Found> {
  const found = await readForHolder(deps, report, incoming, grant);
  if ('refusal' in found) return found;
  const { policy, live } = found;
  if (!policy.server) return { refusal: { code: 'token_invalid' } };
  return { page: serverPage(policy.server, live), origin: boundOrigin(policy, incoming.headers) };
}
