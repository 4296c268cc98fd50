import { keys } from '@presign/limits';
import type { McpPresignAnswer } from '@presign/schema';
import { ledger, partitions } from '@presign/schema/ledger-tables';
import { asc, eq } from 'drizzle-orm';
import { type Dispatcher, request } from 'undici';
import { eventually } from '../harness/eventually.ts';
import type { Stack } from '../harness/stack.ts';

/** An answer as a holder got it. */
export type Heard = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** For a JSON body, its message or each message of its batch. For a stream, its messages. */
  readonly messages: readonly RpcAnswer[];
};

export type RpcAnswer = {
  readonly id?: string | number | null;
  readonly result?: { readonly isError?: boolean };
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly code?: string; readonly limit?: number; readonly used?: number };
  };
};

export const toolCall = (name: string, id: string | number = 1, args: object = {}) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: args },
});
export const ask = (method: string, id: string | number = 1) => ({ jsonrpc: '2.0', id, method });

/** POSTs messages as an MCP client does. */
export async function post(
  url: string,
  message: object | string | Buffer,
  headers: Record<string, string> = {},
  dispatcher?: Dispatcher,
): Promise<Heard> {
  const body = typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message);
  const own = dispatcher && { dispatcher };
  return hear(await request(url, { method: 'POST', headers: { ...USUAL, ...headers }, body, ...own }));
}

/** Any other request with the URL. */
export const send = async (
  url: string,
  method: 'GET' | 'DELETE' | 'HEAD' | 'PUT' | 'OPTIONS' | 'POST',
  headers: Record<string, string> = {},
): Promise<Heard> => hear(await request(url, { method, headers }));

const USUAL = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

async function hear({ statusCode, headers, body }: Awaited<ReturnType<typeof request>>): Promise<Heard> {
  const text = await body.text();
  return { status: statusCode, headers, text, messages: messagesIn(text) };
}

function messagesIn(text: string): RpcAnswer[] {
  const parts = text.startsWith('event:')
    ? [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data)
    : [text];
  return parts.flatMap((part) => {
    try {
      const value = JSON.parse(part ?? '') as RpcAnswer | RpcAnswer[];
      return value;
    } catch {
      return [];
    }
  });
}

/** The outcomes of calls: `ran`, the `data.code` of a refusal, or a server's error code. */
export const outcomes = (heard: Heard): (string | number)[] =>
  heard.messages.map(({ error }) => (error ? (error.data?.code ?? error.code) : 'ran'));

/** How often each outcome came, in all. */
export function tally(all: readonly Heard[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const each of all.flatMap(outcomes)) counts[each] = (counts[each] ?? 0) + 1;
  return counts;
}

/** The URL of a bundle's server, at another gateway than that it was issued for. */
export const at = (stack: Stack, gateway: string | number, url: string): string => {
  const origin = typeof gateway === 'number' ? stack.gatewayUrls[gateway] : gateway;
  return url.replace(new URL(url).origin, origin ?? '');
};

export const urlOf = (answer: McpPresignAnswer, name: string): string => answer.servers[name]?.url ?? '';
export const tokenIn = (url: string): string => new URL(url).searchParams.get('token') ?? '';

/** The grant in a token; a v4.public payload can be read by anyone, its signature is 64 bytes. */
export function grantIn(token: string): { id: string; partition: number; expiresAtMs: number } {
  const payload = Buffer.from(token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
  const { jti, prt, exp } = JSON.parse(payload.toString()) as { jti: string; prt: number; exp: string };
  return { id: jti, partition: prt, expiresAtMs: Date.parse(exp) };
}

/** A session's ledger, once all that was charged has reached it. */
export async function ledgerOf(stack: Stack, { session_id, bundle_token }: McpPresignAnswer) {
  const { partition } = grantIn(bundle_token);
  await eventually(async () => {
    await stack.issuer.ledger.drainAll();
    // The issuer drains by itself, too: what it is at just now is behind its position once it is committed. It can be in the stream
    // still, if Redis was away when it should have been trimmed.
    const [row] = await stack.db.select().from(partitions).where(eq(partitions.id, partition));
    const next = await stack.redis.xrange(keys.usage(partition), `(${row?.lastId}`, '+', 'COUNT', 1);
    return next.length === 0 ? true : undefined;
  });
  return stack.db
    .select()
    .from(ledger)
    .where(eq(ledger.sessionId, session_id))
    .orderBy(asc(ledger.startedAt), asc(ledger.settledAt));
}

/** The sums of a session's ledger. */
export async function sumOf(stack: Stack, answer: McpPresignAnswer) {
  const rows = await ledgerOf(stack, answer);
  return {
    rows: rows.length,
    uses: rows.reduce((sum, row) => sum + row.uses, 0),
    cost: rows.reduce((sum, row) => sum + (row.costMicrousd ?? 0), 0),
  };
}
