import { ask, type Head } from './call-url.ts';
import { readJson } from './schema.ts';

export type Tool = { readonly name: string; readonly description?: string };

/** The tools of a server, or how the gateway refused to list them. */
export type Tools =
  | { readonly tools: readonly Tool[] }
  | { readonly refused: Pick<Head, 'status' | 'code'>; readonly text: string };

const CLIENT = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'presign-console', version: '1' },
};

/**
 * Lists the tools of a server as an MCP client does, over Streamable HTTP (modelcontextprotocol.io, specification of 2025-06-18, read on
 * 2026-11-29).
 * @throws Error that does not name the URL
 */
export async function listTools(url: string): Promise<Tools> {
  let session: string | null = null;
  const send = async (message: object) => {
    const answer = await ask(url, url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session !== null && {
          'mcp-session-id': session,
          'mcp-protocol-version': CLIENT.protocolVersion,
        }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
    session = answer.headers.get('mcp-session-id') ?? session;
    return { status: answer.status, code: answer.headers.get('x-presign-code'), text: await answer.text() };
  };
  const began = await send({ id: 1, method: 'initialize', params: CLIENT });
  if (resultIn(began.text) === undefined) return refusedBy(began);
  await send({ method: 'notifications/initialized' });
  const listed = await send({ id: 2, method: 'tools/list', params: {} });
  const { tools } = (resultIn(listed.text) ?? {}) as { readonly tools?: readonly Tool[] };
  if (session !== null) await ask(url, url, { method: 'DELETE', headers: { 'mcp-session-id': session } });
  return tools ? { tools } : refusedBy(listed);
}

type Message = { readonly result?: object; readonly error?: { readonly data?: { readonly code?: string } } };

/** The messages of an answer: one as JSON, or the events of a stream. */
const messagesIn = (text: string): Message[] => {
  const data = [...text.matchAll(/^data: ?(.*)$/gm)].map(([, line = '']) => line);
  return (data.length > 0 ? data : [text]).flatMap((each) => (readJson(each) as Message | undefined) ?? []);
};

const resultIn = (text: string) => messagesIn(text).find(({ result }) => result)?.result;

function refusedBy({ status, code, text }: { status: number; code: string | null; text: string }): Tools {
  const error = messagesIn(text).find((each) => each.error);
  return {
    refused: { status, code: code ?? error?.error?.data?.code ?? null },
    text: error ? JSON.stringify(error) : text,
  };
}
