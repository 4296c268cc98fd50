import type { McpPricing, McpServerPolicy, Refusal } from '@presign/schema';
import type { Message } from './messages.ts';

/** Prices of MCP calls that the operator sets, in microdollars. */
export type McpPrices = {
  /** By the address of a server, or the origin of several. */
  readonly byServer: ReadonlyMap<string, McpPricing>;
  readonly defaultMicrousd: number;
};

/** A message that does work at the server: one use. */
export type Charged = { readonly message: Message; readonly costMicrousd: number };

/** What the messages of a POST cost, or why one of them may not be sent. */
export function priceCalls(
  messages: readonly Message[],
  server: McpServerPolicy,
  prices: McpPrices,
): { charged: readonly Charged[] } | { refusal: Refusal } {
  const working = messages.filter(doesWork);
  const tools = working.filter(({ method }) => method === 'tools/call');
  const barred = server.tools && tools.find(({ name }) => !server.tools?.includes(name ?? ''));
  if (barred) return { refusal: toolRefusal(barred, server) };
  return {
    charged: working.map((message) => ({ message, costMicrousd: priceOf(message, server, prices) })),
  };
}

/**
 * Requests that only ask what there is or steer a session. All others do work, unknown ones too, and also those
 * without an id, which a server may run all the same.
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

/** The grant's price for the tool, the grant's for any call, then the operator's. */
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
