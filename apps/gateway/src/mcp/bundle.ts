import type { IncomingMessage } from 'node:http';
import type { McpBundle, McpServerEntry, Refusal } from '@presign/schema';
import type { Context, Handler } from 'hono';
import type { CallDeps, GatewayEnv } from '../call-deps.ts';
import { CallReport } from '../call-report.ts';
import { boundOrigin } from '../grant/bind.ts';
import { loadSecret } from '../grant/credential.ts';
import { loadPolicyFor } from '../grant/load-policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import { asksForPage, type Html, pageAnswer, refusalPage } from '../holder/page.ts';
import { type Live, readLive } from '../holder/read-live.ts';
import { answerHeaders } from '../http/headers.ts';
import { UNAVAILABLE } from '../http/refuse.ts';
import { chargeCall, newHoldId } from '../limits/admit.ts';
import { checkQuota } from '../share/read-quota.ts';
import { bundleRefusalAnswer } from './answer/refuse.ts';
import { bundlePage } from './page.ts';

/**
 * `GET /mcp/bundle/<token>`: the bundle's document, a client's configuration with `?format=`, or a page for a browser. It costs no
 * use.
 */
export function bundle(deps: CallDeps<VerifiedGrant>): Handler<GatewayEnv> {
  return async (c) => {
    const report = new CallReport('bundle', c.get('requestId'), c.env.incoming as IncomingMessage);
    report.provider = 'mcp';
    let refusal: Refusal | undefined = { code: 'internal_error' };
    let answer: Response | undefined;
    try {
      const format = c.req.query('format');
      // A browser that asks for a format has followed a link of the page.
      const asksPage = format === undefined && asksForPage(c);
      const found = await findDocument(deps, report, c, { format, asksPage });
      refusal = 'refusal' in found ? found.refusal : undefined;
      answer = await ('refusal' in found
        ? refuse(found.refusal, report.requestId, asksPage)
        : answerOf(c, report, found));
      return answer;
    } finally {
      deps.report(report, refusal, answer?.status);
    }
  };
}

function refuse(refusal: Refusal, requestId: string, asksPage: boolean): Response | Promise<Response> {
  const json = bundleRefusalAnswer(refusal, requestId);
  return asksPage ? refusalPage(refusal, json, requestId) : json;
}

type Document = { readonly body: object | string } | { readonly page: Html };

function answerOf(c: Context<GatewayEnv>, { policy }: CallReport, found: Document) {
  const origin = policy && boundOrigin(policy, c.env.incoming.headers);
  if ('page' in found) return pageAnswer('A bundle of MCP servers', found.page, { origin });
  const headers = { ...answerHeaders(origin), 'cache-control': 'no-store' };
  if (typeof found.body !== 'string') return c.json(found.body, 200, headers);
  return c.body(found.body, 200, { ...headers, 'content-type': 'application/toml' });
}

/** Finds the bundle's document, in the requested format. */
async function findDocument(
  deps: CallDeps<VerifiedGrant>,
  report: CallReport,
  c: Context<GatewayEnv>,
  { format, asksPage }: { readonly format: string | undefined; readonly asksPage: boolean },
): Promise<Document | { refusal: Refusal }> {
  if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return { refusal: NOT_A_SERVER };
  const incoming = c.env.incoming as IncomingMessage;
  const found = await findBundle(deps, report, incoming, { token: c.req.param('token') ?? '', asksPage });
  if ('refusal' in found) return found;
  if (found.live) return { page: bundlePage(found.bundle, FORMATS, found.live) };
  const body = format === undefined ? found.bundle : inFormat(found.bundle, format);
  return body === undefined ? { refusal: unknownFormat() } : { body };
}

/** The status is not 405, because clients of the older transport would then continue with a GET and hide the message. */
const NOT_A_SERVER: Refusal = {
  code: 'method_not_allowed',
  details: { allowed: ['GET', 'HEAD'] },
  message: 'This is the URL of a bundle: GET it, and connect to the URLs of the servers in it.',
};

const unknownFormat = (): Refusal => ({
  code: 'invalid_request',
  param: 'format',
  message: `format: expected one of ${FORMATS.join(', ')}.`,
});

async function findBundle(
  deps: CallDeps<VerifiedGrant>,
  report: CallReport,
  incoming: IncomingMessage,
  { token, asksPage }: { readonly token: string; readonly asksPage: boolean },
): Promise<Found> {
  const verified = deps.verify(token);
  report.grant = 'grant' in verified ? verified.grant : verified.signed;
  const spent = checkQuota(deps.readQuota, report.grant);
  if (spent) return { refusal: spent };
  if ('refusal' in verified) return verified;
  const begun = deps.freeWork.begin(verified.grant.id, 1, true);
  if ('refusal' in begun) return begun;
  return readBundle(deps, report, incoming, { grant: verified.grant, asksPage }).finally(begun.end);
}

/** The document, and the figures if a page is requested. */
type Found = { readonly bundle: McpBundle; readonly live?: Live } | { readonly refusal: Refusal };

async function readBundle(
  deps: CallDeps<VerifiedGrant>,
  report: CallReport,
  incoming: IncomingMessage,
  { grant, asksPage }: { readonly grant: VerifiedGrant; readonly asksPage: boolean },
): Promise<Found> {
  const { requestId } = report;
  const found = await loadPolicyFor(deps, report, incoming, grant);
  if ('refusal' in found) return found;
  // Charges nothing, and is refused when the bundle is revoked.
  const ask = { chargeId: newHoldId(), uses: 0, costMicrousd: 0, record: '{}' };
  const checked = await chargeCall(deps, requestId, grant, found.policy, ask);
  if ('refusal' in checked) return checked;
  const loaded = await loadSecret(deps, requestId, found.policy, checked.admitted.credentialVersion);
  if (loaded.is !== 'loaded') return { refusal: UNAVAILABLE };
  const bundle = JSON.parse(loaded.secret) as McpBundle;
  if (!asksPage) return { bundle };
  const read = await readLive(deps, requestId, grant, found.policy);
  return 'refusal' in read ? read : { bundle, live: read.live };
}

/**
 * Converts a bundle's document to a client's configuration.
 * @returns a document of JSON, or the text of a file in another language; undefined when the format is not one of `FORMATS`
 */
export function inFormat(bundle: McpBundle, format: string): object | string | undefined {
  if (format === CODEX) return codex(bundle);
  const client = CLIENTS.get(format);
  if (client === undefined) return undefined;
  const entries = Object.entries(bundle.mcpServers).map(([name, entry]) => [name, client.entry(entry)]);
  // Unlike an assignment, `fromEntries` makes every name, `__proto__` too, an own field.
  return { [client.under]: Object.fromEntries(entries) };
}

/** A client's configuration: the field that lists its servers, and the form of one server. */
type Client = { readonly under: string; readonly entry: (entry: McpServerEntry) => object };

/** https://code.claude.com/docs/en/mcp: `.mcp.json`, `type` is `http` or `sse`. */
const claudeCode = ({ url, transport }: McpServerEntry) => ({ type: transport, url });

/**
 * `claude_desktop_config.json` starts programs (https://modelcontextprotocol.io/docs/develop/connect-local-servers),
 * so it starts mcp-remote: https://github.com/geelen/mcp-remote#readme, "Flags" and "Transport Strategies".
 */
const claudeDesktop = ({ url, transport }: McpServerEntry) => ({
  command: 'npx',
  args: [
    '-y',
    'mcp-remote',
    url,
    '--transport',
    `${transport}-only`,
    ...(url.startsWith('http:') ? ['--allow-http'] : []),
  ],
});

/** https://cursor.com/docs/mcp: `mcp.json` has only a `url`. The client tries both transports. */
const cursor = ({ url }: McpServerEntry) => ({ url });

/** https://code.visualstudio.com/docs/copilot/reference/mcp-configuration: `mcp.json`, under `servers`. */
const vscode = ({ url, transport }: McpServerEntry) => ({ type: transport, url });

/** https://docs.windsurf.com/windsurf/cascade/mcp: `mcp_config.json`, a remote server has a `serverUrl`. */
const windsurf = ({ url }: McpServerEntry) => ({ serverUrl: url });

/**
 * https://docs.cline.bot/mcp/adding-and-configuring-servers: `cline_mcp_settings.json`. Without a `type` it treats a
 * `url` as SSE, and it has its own name for Streamable HTTP (`src/services/mcp/schemas.ts` of cline/cline).
 */
const cline = ({ url, transport }: McpServerEntry) => ({
  type: transport === 'http' ? 'streamableHttp' : 'sse',
  url,
});

/**
 * https://geminicli.com/docs/tools/mcp-server: `settings.json`, a `url` without a `type` is tried as Streamable HTTP.
 */
const gemini = ({ url, transport }: McpServerEntry) =>
  transport === 'http' ? { httpUrl: url } : { url, type: 'sse' };

/**
 * https://opencode.ai/v1/docs/mcp-servers: `opencode.json`. It tries both transports; after a 401 it would try to sign in, although the
 * URL's token is the credential. Run with 1.18.33 on 2026-11-27.
 */
const opencode = ({ url }: McpServerEntry) => ({ type: 'remote', url, oauth: false });

/**
 * https://ai.pydantic.dev/mcp/client: the file of `load_mcp_toolsets` has only a `url`. The client chooses SSE for a path that ends in
 * `/sse`, and the gateway serves that path like the other one.
 */
const pydanticAi = ({ url, transport }: McpServerEntry) => ({
  url: transport === 'sse' ? url.replace('/mcp/mcp?', '/mcp/sse?') : url,
});

const CODEX = 'codex';

/**
 * https://developers.openai.com/codex/mcp: `config.toml`. Codex speaks Streamable HTTP only, so it starts mcp-remote for the older
 * transport. A JSON string is a basic string in TOML (https://toml.io/en/v1.0.0#string).
 */
function codex({ mcpServers }: McpBundle): string {
  const tables = Object.entries(mcpServers).map(([name, entry]) => {
    const fields = entry.transport === 'http' ? { url: entry.url } : claudeDesktop(entry);
    const lines = Object.entries(fields).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
    return `[mcp_servers.${JSON.stringify(name)}]\n${lines.join('')}`;
  });
  return tables.join('\n');
}

const CLIENTS: ReadonlyMap<string, Client> = new Map([
  ['claude-code', { under: 'mcpServers', entry: claudeCode }],
  ['claude-desktop', { under: 'mcpServers', entry: claudeDesktop }],
  ['cursor', { under: 'mcpServers', entry: cursor }],
  ['vscode', { under: 'servers', entry: vscode }],
  ['windsurf', { under: 'mcpServers', entry: windsurf }],
  ['cline', { under: 'mcpServers', entry: cline }],
  ['gemini-cli', { under: 'mcpServers', entry: gemini }],
  ['opencode', { under: 'mcp', entry: opencode }],
  ['pydantic-ai', { under: 'mcpServers', entry: pydanticAi }],
]);

/** The clients that have a format. */
export const FORMATS: readonly string[] = [...CLIENTS.keys(), CODEX];
