import { cheapestCall, type Provider } from '@presign/providers';
import {
  type BudgetLimits,
  type KeyPolicy,
  type McpPresignRequest,
  microdollars,
  RefusedError,
  WARNING_CODES,
  type Warning,
} from '@presign/schema';
import type { RouteDeps } from '../middleware/route-deps.ts';

/** The parts of a written LLM URL that decide what its calls cost at least. */
type Url = {
  readonly method: string;
  readonly paths: readonly string[];
  readonly config: Record<string, unknown> | null;
  readonly models: readonly string[] | null;
  readonly limits: Pick<BudgetLimits, 'costLimitMicrousd'>;
};

/** Warns of a spend limit that no call of an LLM URL can meet, by the prices of now: people mean dollars, and write microdollars. */
export async function llmWarnings(
  { prices, now }: Pick<RouteDeps, 'prices' | 'now'>,
  provider: Provider,
  { limits, config, ...url }: Url,
): Promise<readonly Warning[]> {
  const { costLimitMicrousd: limit } = limits;
  if (limit === null) return [];
  const at = { prices: prices.current(), now: now() };
  const found = await cheapestCall(provider, { ...url, config: config ?? {} }, limit, at);
  if (found === undefined) return [];
  if (found !== 'unpriced')
    return found.microusd <= limit
      ? []
      : [tooLow(limit, found.microusd, `with ${found.model} at ${provider.id}`)];
  const message = `models: none of them has a price at ${provider.id}, so under a cost_limit no call can pass.`;
  return [{ code: WARNING_CODES.models, param: 'models', message, needed: null }];
}

/** The same for a bundle, if the request has the prices of all calls: an operator may have set others. */
export function mcpWarnings({ cost_limit: limit, servers }: McpPresignRequest): readonly Warning[] {
  if (limit === undefined) return [];
  const prices = servers.flatMap(({ pricing }) => [pricing?.default, ...Object.values(pricing?.tools ?? {})]);
  const known = prices.filter((price) => price !== undefined);
  const least = Math.min(...known);
  return known.length < prices.length || least <= limit ? [] : [tooLow(limit, least, 'at these servers')];
}

function tooLow(limit: number, needed: number, where: string): Warning {
  const message = `cost_limit: ${microdollars(limit)} is less than the cheapest call needs, which is ${microdollars(needed)} ${where}.`;
  return { code: WARNING_CODES.cost_limit, param: 'cost_limit', message, needed };
}

/** The field of an answer that has warnings, if there are any. */
export const warned = (warnings: readonly Warning[]): { readonly warnings?: Warning[] } =>
  warnings.length === 0 ? {} : { warnings: [...warnings] };

/** @throws RefusedError `invalid_request` if the policy of the API key turns warnings into refusals */
export function obeyWarnings(policy: KeyPolicy | undefined, [first]: readonly Warning[]): void {
  if (!first || policy?.refuse_warnings !== true) return;
  throw new RefusedError({ code: 'invalid_request', param: first.param, message: first.message });
}
