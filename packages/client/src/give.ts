import { microdollars } from './dollars.ts';
import type { Presign } from './methods.ts';
import { newestPriced } from './newest-priced.ts';
import { PresignError } from './presign-error.ts';
import { CommandError, connect, type Io, UsageError } from './terminal.ts';
import { MCP_TOOLS, TOOLS, type Tool } from './tool-settings.ts';

export const GIVE_HELP: string = `Usage: presign give DOLLARS --for TOOL [options]

Issues a URL that may spend this many dollars, and prints the settings to paste into the tool.

  --for TOOL          ${[...TOOLS.keys()].join(', ')}
  --model MODEL       the only model that may be called. Without it, and if the tool's usual model has no
                      price, the newest version of it that has one
  --uses COUNT        calls that may be made; default unlimited
  --expires-in TIME   such as 30m, 12h, 7d or 600 (seconds); default one hour
  --provider NAME     another provider that has the API of the tool, such as sandbox
  --virtual-key ID    the provider's key, stored with Presign
  --mcp NAME=URL      gives this MCP server instead of a model; may be repeated. With it, --for takes
                      ${[...MCP_TOOLS.keys()].join(', ')}

Without --virtual-key, PROVIDER_API_KEY is the provider's key. Standard output contains only the settings.`;

/** The command line after parsing. */
type Asked = {
  readonly costLimit: number;
  readonly tool: string;
  readonly limits: { readonly max_uses?: number; readonly expires_in?: number };
  readonly model: string | undefined;
  readonly provider: string | undefined;
  readonly virtualKey: string | undefined;
  readonly servers: readonly { readonly name: string; readonly url: string }[];
};

const OPTIONS = ['for', 'model', 'uses', 'expires-in', 'provider', 'virtual-key', 'mcp'];

/** @throws UsageError */
function readAsked(args: readonly string[]): Asked {
  const values = new Map<string, string[]>();
  const amounts: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const [, name, joined] = /^--([^=]+)(?:=(.*))?$/s.exec(args[at] ?? '') ?? [];
    if (name === undefined) {
      amounts.push(args[at] ?? '');
      continue;
    }
    if (!OPTIONS.includes(name)) throw new UsageError(`unknown option --${name}`);
    const value = joined ?? args[++at];
    if (value === undefined || value === '') throw new UsageError(`--${name} needs a value`);
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const [amount, unexpected] = amounts;
  if (amount === undefined) throw new UsageError('DOLLARS is missing: how much the URL may spend, such as 5');
  if (unexpected !== undefined) throw new UsageError(`unexpected argument "${unexpected}"`);
  const last = (name: string) => values.get(name)?.at(-1);
  const servers = (values.get('mcp') ?? []).map(readServer);
  const tools = servers.length > 0 ? MCP_TOOLS : TOOLS;
  const tool = last('for') ?? '';
  if (!tools.has(tool)) throw new UsageError(`--for: expected one of ${[...tools.keys()].join(', ')}`);
  const [uses, expiresIn] = [last('uses'), last('expires-in')];
  return {
    costLimit: readMicrodollars(amount),
    tool,
    limits: {
      ...(uses !== undefined && { max_uses: readCount(uses) }),
      ...(expiresIn !== undefined && { expires_in: readSeconds(expiresIn) }),
    },
    model: last('model'),
    provider: last('provider'),
    virtualKey: last('virtual-key'),
    servers,
  };
}

function readMicrodollars(text: string): number {
  try {
    const amount = microdollars(text);
    if (amount > 0) return amount;
  } catch {}
  throw new UsageError('DOLLARS: expected an amount above 0 with at most 6 decimals, such as 5 or 0.50');
}

function readCount(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UsageError('--uses: expected a whole number from 1');
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 };

function readSeconds(text: string): number {
  const [, figure, unit = 's'] = /^([1-9]\d{0,8})([smhd])?$/.exec(text) ?? [];
  if (figure === undefined)
    throw new UsageError('--expires-in: expected a time such as 30m, 12h, 7d or 600 (seconds)');
  return Number(figure) * SECONDS[unit as keyof typeof SECONDS];
}

function readServer(text: string): { name: string; url: string } {
  const [, name, url] = /^([\w-]+)=(https?:\/\/.+)$/.exec(text) ?? [];
  if (name === undefined || url === undefined)
    throw new UsageError('--mcp: expected NAME=URL, such as docs=https://mcp.example.com/mcp');
  return { name, url };
}

/**
 * `presign give`: issues a URL, and prints the settings of the tool that will call it.
 * @throws UsageError, CommandError, PresignError
 */
export async function give(args: readonly string[], io: Io): Promise<void> {
  const asked = readAsked(args);
  const { env, out, note } = io;
  const presign = connect(io, 'presign');
  const given =
    asked.servers.length > 0
      ? await giveServers(presign, asked)
      : await giveModel(presign, asked, { env, note });
  out(given.settings);
  const expires = new Date(given.expiresAt * 1000).toISOString().replace('.000', '');
  const limits = [counted(asked.costLimit / 1_000_000, 'dollar')];
  if (asked.limits.max_uses !== undefined) limits.push(counted(asked.limits.max_uses, 'use'));
  note(`\nPaste this into ${given.where}. It allows ${limits.join(' and ')}, until ${expires}.`);
  note(`Anyone who has it can use it. To revoke it: DELETE /v1/sessions/${given.sessionId}`);
}

const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`;

type Given = {
  readonly settings: string;
  readonly where: string;
  readonly expiresAt: number;
  readonly sessionId: string;
};

async function giveModel(
  presign: Presign,
  asked: Asked,
  { env, note }: Pick<Io, 'env' | 'note'>,
): Promise<Given> {
  const tool = TOOLS.get(asked.tool);
  if (!tool) throw new UsageError('--for: unknown tool');
  const { virtualKey, limits } = asked;
  if (tool.needsModel && asked.model === undefined)
    throw new UsageError(`--model is missing: the settings of ${asked.tool} name a model`);
  const provider = asked.provider ?? tool.provider;
  const model = asked.model ?? (await modelInPlace(presign, { tool, provider, name: asked.tool }, note));
  const issued = await presign.presign({
    provider,
    path: [...tool.paths],
    cost_limit: asked.costLimit,
    ...limits,
    ...(model !== undefined && { config: { model } }),
    ...(virtualKey === undefined
      ? { client_api_key: providerKey(env, provider) }
      : { virtual_key: virtualKey }),
  });
  const settings = tool.settings(issued, model);
  return { settings, where: tool.where, expiresAt: issued.expires_at, sessionId: issued.session_id };
}

/**
 * The model to set in place of a tool's usual one: a call of a model without a price is refused under a spend limit.
 * @returns undefined if the tool may choose
 * @throws CommandError if no version of its usual model has a price
 */
async function modelInPlace(
  presign: Presign,
  { tool: { usualModel }, provider, name }: { tool: Tool; provider: string; name: string },
  note: Io['note'],
): Promise<string | undefined> {
  if (usualModel === undefined) return undefined;
  const own = await pricedModels(presign, { provider, model: usualModel });
  if (own === undefined) {
    note(
      `The API key lacks the scope read, so the price of ${usualModel}, which ${name} calls, was not checked.`,
    );
    return undefined;
  }
  if (own.length > 0) return undefined;
  const priced = (await pricedModels(presign, { provider })) ?? [];
  // The issuer says what a provider without any price lacks.
  if (priced.length === 0) return undefined;
  const model = newestPriced(usualModel, priced);
  if (model === undefined)
    throw new CommandError(
      `${usualModel}, which ${name} calls, has no price at ${provider}, nor has another version of it. Name a model with --model.`,
    );
  note(`${usualModel}, which ${name} calls, has no price yet, so the URL and the settings have ${model}.`);
  return model;
}

/** The names of models that have a price. Undefined: the key may not read them. */
async function pricedModels(
  presign: Presign,
  query: { readonly provider: string; readonly model?: string },
): Promise<readonly string[] | undefined> {
  try {
    return (await presign.listModels(query)).data.map(({ model }) => model);
  } catch (error) {
    if (error instanceof PresignError && error.code === 'forbidden') return undefined;
    throw error;
  }
}

function providerKey(env: Io['env'], provider: string): string {
  // The sandbox accepts every key that begins so.
  const key = env.PROVIDER_API_KEY || (provider === 'sandbox' ? 'sk-sandbox' : undefined);
  if (key !== undefined) return key;
  throw new CommandError(
    `The key of ${provider} is missing. Name a stored one with --virtual-key, or set PROVIDER_API_KEY.`,
  );
}

async function giveServers(presign: Presign, asked: Asked): Promise<Given> {
  const bundle = await presign.mcpPresign({
    servers: asked.servers.map((server) => ({ ...server, transport: 'http' as const })),
    cost_limit: asked.costLimit,
    ...asked.limits,
  });
  const where = MCP_TOOLS.get(asked.tool) ?? '';
  const settings = await readFormat(bundle.bundle_url, asked.tool);
  return { settings, where, expiresAt: bundle.expires_at, sessionId: bundle.session_id };
}

/** The bundle's document in the format of a client. An error names no URL, because anyone who has it can use it. */
async function readFormat(bundleUrl: string, format: string): Promise<string> {
  const answer = await fetch(`${bundleUrl}?format=${format}`).catch(() => undefined);
  if (!answer?.ok)
    throw new CommandError(
      `The gateway at ${new URL(bundleUrl).origin} did not return the settings${answer ? ` (status ${answer.status})` : ''}.`,
    );
  const text = await answer.text();
  return answer.headers.get('content-type')?.includes('json')
    ? JSON.stringify(JSON.parse(text), null, 2)
    : text.trimEnd();
}
