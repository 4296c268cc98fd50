import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import type { Driven, Generation } from './clients-drive.ts';

/** Something that a client does with the reference server. */
export type Scenario = {
  readonly feature: string;
  /** The outcome. It has no ids and no times, so it is the same each time. */
  readonly run: (driven: Driven) => Promise<unknown>;
  readonly outcome: unknown;
  /** The outcome through the gateway, if it is another one for a reason in docs/reference/mcp.md. */
  readonly through?: unknown;
  /** Uses that count, over both transports. A request that the server answers with -32602 counts. */
  readonly uses: number;
  /** The only generation that has this feature, if the other has no such thing. */
  readonly generation?: Generation;
};

type CallOptions = {
  readonly signal?: AbortSignal;
  /** How long the client waits for the answer, in ms. */
  readonly timeout?: number;
  readonly onprogress?: (progress: { progress: number; total?: number }) => void;
};

/** Calls a tool, with either generation's client. */
export function callTool(
  { client }: Driven,
  name: string,
  args: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<Called> {
  const params = { name, arguments: args };
  const called =
    client instanceof ClientV1
      ? client.callTool(params, undefined, options as never)
      : client.callTool(params, options as never);
  return called as Promise<Called>;
}

export type Called = {
  readonly content: readonly { readonly type: string; readonly text?: string; readonly data?: string }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
};

export const textOf = ({ content }: Called): string => content.map(({ text = '' }) => text).join('');

/** A call that must fail: the code that the server gave. */
export async function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'succeeded',
    (error: { code?: unknown }) => error.code,
  );
}
