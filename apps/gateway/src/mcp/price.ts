import { type McpPricing, type McpServerPolicy, mcpPricing, type Refusal } from '@presign/schema';
import type { Message } from './messages.ts';

/** The operator's prices of MCP calls, in microdollars. */
export type McpPrices = {
  /** By a server's address, or by the origin of several servers. */
  readonly byServer: ReadonlyMap<string, McpPricing>;
  readonly defaultMicrousd: number;
};

/** A message that makes the server work. It costs one use. */
export type Charged = { readonly message: Message; readonly costMicrousd: number };

/** Uses and cost of messages. */
export type Amount = { readonly uses: number; readonly costMicrousd: number };

export const NOTHING: Amount = { uses: 0, costMicrousd: 0 };

/** Prices the messages of a POST. Refuses all of them when one calls a tool that the URL does not allow. */
export function priceCalls(
  messages: readonly Message[],
  server: McpServerPolicy,
  prices: McpPrices,
): { charged: readonly Charged[] } | { refusal: Refusal } {
  const working = messages.filter(doesWork);
  const tools = working.filter(({ method }) => method === 'tools/call');
  const disallowed = server.tools && tools.find(({ name }) => !server.tools?.includes(name ?? ''));
  if (disallowed) return { refusal: toolRefusal(disallowed, server) };
  return {
    charged: working.map((message) => ({ message, costMicrousd: priceOf(message, server, prices) })),
  };
}

/**
 * Requests that only list what a server has or control a session. All other requests do work: unknown ones, and those
 * without an id, too, because a server may run them.
 */
const FREE: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'subscriptions/listen',
  'resources/subscribe',
  'resources/unsubscribe',
  'logging/setLevel',
  'completion/complete',
]);
const FREE_FORM = /^(notifications\/.*|tasks\/.*|.+\/list)$/;

const doesWork = ({ method }: Message): boolean =>
  method !== undefined && !FREE.has(method) && !FREE_FORM.test(method);

/** The grant's price of the tool, else the grant's default, else the operator's price. */
function priceOf({ method, name }: Message, server: McpServerPolicy, prices: McpPrices): number {
  const tool = method === 'tools/call' ? name : undefined;
  const operators = prices.byServer.get(server.url) ?? prices.byServer.get(new URL(server.url).origin);
  return priceIn(server.pricing, tool) ?? priceIn(operators, tool) ?? prices.defaultMicrousd;
}

function priceIn(pricing: McpPricing | undefined, tool: string | undefined): number | undefined {
  if (!pricing) return undefined;
  const { tools = {}, default: other } = pricing;
  return tool !== undefined && Object.hasOwn(tools, tool) ? tools[tool] : other;
}

function toolRefusal({ name }: Message, { tools = [] }: McpServerPolicy): Refusal {
  const message = `This URL does not allow the tool ${name?.slice(0, 128) ?? 'without a name'}.`;
  return { code: 'tool_not_allowed', message, details: { allowed: tools } };
}

/**
 * Reads the operator's prices of MCP calls, in microdollars by a server's address or by the origin of several servers:
 * `{"https://mcp.example.com/mcp": {"default": 500, "tools": {"search": 2000}}}`.
 * @throws Error that names the wrong address
 */
export function readMcpPrices(text: string): ReadonlyMap<string, McpPricing> {
  const file: unknown = JSON.parse(text);
  if (typeof file !== 'object' || file === null || Array.isArray(file)) throw new Error('expected an object');
  const prices = new Map<string, McpPricing>();
  for (const [address, pricing] of Object.entries(file)) {
    const read = mcpPricing.safeParse(pricing);
    if (!URL.canParse(address)) throw new Error(`${address}: expected the address of a server`);
    if (!read.success) throw new Error(`${address}: ${read.error.issues[0]?.message ?? 'malformed'}`);
    prices.set(address, read.data);
  }
  return prices;
}
