import { isOneModel, nameOfPlace, type PricesAt } from '@presign/providers';
import type { PriceKeeper } from '@presign/providers/keep-prices';
import { briefly } from '@presign/schema';
import { LRUCache } from 'lru-cache';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import type { Unplannable } from './hold.ts';
import type { Plan } from './plan.ts';

/**
 * Models whose price the provider's stated cost has disproved: a call of an account was billed above its maximum cost, although its usage
 * was within the bound. Only this account is affected, because its key may have another price.
 */
export type Disproved = LRUCache<string, readonly string[]>;

const DAY_MS = 86_400_000;
/** Evicting an entry costs one more overrun. */
const REMEMBERED = 10_000;

export const createDisproved = (): Disproved => new LRUCache({ max: REMEMBERED, ttl: DAY_MS });

type PricedCall = {
  readonly grant: LlmGrant;
  readonly policy: Policy;
  readonly plan: Pick<Plan, 'model' | 'hold' | 'spend'>;
};
type Needs = {
  readonly disproved: Disproved;
  readonly prices: Pick<PriceKeeper, 'current'>;
  readonly now: () => number;
};

/**
 * Another price list may have the right price, so the list is part of the key. If a call states its highest price, a provider exceeds it
 * only for a customer's own key at a host. Only that credential is then refused.
 */
function keyOf({ prices }: Needs, { grant: { provider }, policy, plan: { spend } }: PricedCall): string {
  const whose = spend?.withHighestPrice ? policy.ref.credentialId : policy.accountId;
  return [whose, provider.id, prices.current().id].join(' ');
}

export function disprove(deps: Needs, call: PricedCall): void {
  const key = keyOf(deps, call);
  const known = deps.disproved.get(key) ?? [];
  const { model } = call.plan;
  if (model !== undefined && !known.includes(model)) deps.disproved.set(key, [...known, model]);
}

/** Refuses a call whose hold would follow from a disproved price, by any name of the model. */
export function checkPrice(deps: Needs, call: PricedCall): Unplannable | undefined {
  const { grant, plan } = call;
  const { model = '' } = plan;
  const known = deps.disproved.size > 0 && plan.hold !== undefined && deps.disproved.get(keyOf(deps, call));
  if (!known) return undefined;
  const at: PricesAt = { prices: deps.prices.current(), now: deps.now() };
  if (!known.some((each) => isOneModel(grant.provider, [each, model], at))) return undefined;
  const message = `The price of ${briefly(model)} at ${grant.provider.id} is not known: it has billed a call of this account above the price of the lists (${at.prices.id}), so no spend limit can hold. The operator can load a newer list (PRICES_URL), or add the price to PROVIDERS_FILE (pricing).`;
  return {
    refusal: { code: 'price_unknown', param: 'model', message },
    unbounded: nameOfPlace({ param: 'model' }, { model }),
  };
}
