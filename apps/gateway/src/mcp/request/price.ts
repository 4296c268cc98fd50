import {
  type ArgumentCondition,
  briefly,
  type McpPricing,
  type McpServerPolicy,
  mcpPricing,
  type Refusal,
} from '@presign/schema';
import type { ToolRules } from '../../grant/tool-rules.ts';
import { UNAVAILABLE } from '../../http/refuse.ts';
import { KnownNames } from '../../json/names.ts';
import { type Message, type Messages, nameParam, wantsAnswer } from './messages.ts';

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

/** Prices the messages of a POST. Refuses all of them when the URL does not allow one of them. */
export function priceCalls(
  messages: readonly Message[],
  rules: ToolRules,
  prices: McpPrices,
): { charged: readonly Charged[] } | { refusal: Refusal } {
  const { server } = rules;
  const operators = prices.byServer.get(server.url) ?? prices.byServer.get(addressOf(server).origin);
  for (const message of messages) {
    const refusal = nameRefusal(message, rules, operators);
    if (refusal) return { refusal };
  }
  const charged = messages.filter(doesWork).map((message) => ({
    message,
    costMicrousd: priceIn(server.pricing, message) ?? priceIn(operators, message) ?? prices.defaultMicrousd,
  }));
  return { charged };
}

/** Free requests count for the rate limit, because the server works for them, too. Notifications are bounded as free work. */
export function callsOf(messages: Messages | undefined, charged: readonly Charged[]): readonly Message[] {
  const all = messages?.all ?? [];
  if (all.every(wantsAnswer)) return all;
  const isCharged = new Set(charged.map(({ message }) => message));
  return all.filter((each) => isCharged.has(each) || wantsAnswer(each));
}

type Address = { readonly origin: string; readonly path: string; readonly query: string };

const ADDRESSES = new WeakMap<McpServerPolicy, Address>();

/** The parts of a server's address. They are kept as long as its policy. */
export function addressOf(server: McpServerPolicy): Address {
  const known = ADDRESSES.get(server);
  if (known) return known;
  const address = readAddress(server.url);
  ADDRESSES.set(server, address);
  return address;
}

export function readAddress(url: string): Address {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname, query: search.slice(1) };
}

/** Refuses a method or tool that the server may read as another one than the gateway, or that the URL does not allow. */
function nameRefusal(
  message: Message,
  rules: ToolRules,
  operators: McpPricing | undefined,
): Refusal | undefined {
  const { method, name, hasOddName } = message;
  if (method === undefined) return undefined;
  const meant = METHODS.alike(method);
  if (meant !== undefined) return misspelt('method', method, meant);
  const param = `params.${nameParam(method)}`;
  if (hasOddName) return { code: 'invalid_request', param, message: `${param}: expected a string.` };
  if (method !== 'tools/call') return undefined;
  if (name === undefined)
    return { code: 'invalid_request', param, message: `${param}: expected the name of a tool.` };
  if (rules.allowed?.has(name) === false) return toolRefusal(name, [...rules.allowed]);
  const [own, theirs] = [rules.tools, operators && toolsIn(operators)];
  const like = theirs?.has(name) ? undefined : own.alike(name);
  const tool = like ?? (own.has(name) ? undefined : theirs?.alike(name));
  return tool === undefined ? argumentRefusal(name, message, rules) : misspelt(param, name, tool);
}

/** Refuses a call whose arguments do not meet the conditions of its tool, or were not judged. */
function argumentRefusal(
  tool: string,
  { arguments: judged }: Message,
  { arguments: all }: ToolRules,
): Refusal | undefined {
  const ofTool = all.of.get(tool);
  if (!ofTool) {
    // A price list may name another spelling of the tool, and the server may run the tool for both.
    const meant = all.tools.alike(tool);
    return meant === undefined ? undefined : misspelt('params.name', tool, meant);
  }
  if (judged === 'allowed') return undefined;
  // The grant was not known when the message was read, because a store did not answer.
  if (judged === undefined) return UNAVAILABLE;
  if ('spelt' in judged) return misspelt(judged.param, judged.spelt, judged.meant);
  const { unmet } = judged;
  const allowed = ofTool.conditions.find(([name]) => name === unmet)?.[1] ?? {};
  const message = `This URL allows the tool ${tool} only with ${unmet} ${inWords(allowed)}.`;
  return {
    code: 'argument_not_allowed',
    param: `params.arguments.${unmet}`,
    message,
    details: { tool, argument: unmet, allowed },
  };
}

const inWords = ({ equals, prefix }: ArgumentCondition): string =>
  prefix === undefined
    ? `${briefly(JSON.stringify(equals))}`
    : `as text that begins with ${briefly(JSON.stringify(prefix))}`;

function misspelt(param: string, name: string, meant: string): Refusal {
  const differs = 'differs only in case, spaces or Unicode form, so a server may read it as that';
  return {
    code: 'invalid_request',
    param,
    message: `${param}: ${briefly(name)} is not ${meant}. It ${differs}.`,
  };
}

const TOOLS = new WeakMap<McpPricing, KnownNames>();

/** The tools that the operator's prices name. They are compiled once, and stay while the process runs. */
function toolsIn(operators: McpPricing): KnownNames {
  const found = TOOLS.get(operators);
  if (found) return found;
  const known = new KnownNames(Object.keys(operators.tools ?? {}));
  TOOLS.set(operators, known);
  return known;
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
/** The methods of all revisions of MCP that clients send. */
const METHODS = new KnownNames([
  ...FREE,
  'tools/call',
  'tools/list',
  'prompts/get',
  'prompts/list',
  'resources/read',
  'resources/list',
  'resources/templates/list',
  'tasks/get',
  'tasks/result',
  'tasks/update',
  'tasks/cancel',
  'tasks/list',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
  'notifications/tasks/status',
]);

/** Free methods of every name: a notification, a task, a list. */
const FREE_FORM = /^(notifications\/.*|tasks\/.*|.+\/list)$/;

const doesWork = ({ method }: Message): boolean =>
  method !== undefined && !FREE.has(method) && !FREE_FORM.test(method);

/** The price of a message: the tool's own, or else the default. */
function priceIn(pricing: McpPricing | undefined, { method, name }: Message): number | undefined {
  if (!pricing) return undefined;
  const { tools = {}, default: other } = pricing;
  const tool = method === 'tools/call' ? name : undefined;
  return tool !== undefined && Object.hasOwn(tools, tool) ? tools[tool] : other;
}

function toolRefusal(name: string, allowed: readonly string[]): Refusal {
  const message = `This URL does not allow the tool ${briefly(name)}.`;
  return { code: 'tool_not_allowed', message, details: { allowed } };
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
