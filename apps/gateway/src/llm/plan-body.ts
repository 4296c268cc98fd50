import { spendOf } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { LlmDeps } from '../deps.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { takeWork } from '../workers/read-quota.ts';
import type { PlanData } from '../workers/worker.ts';
import { type Arrived, type Need, readContent } from './body.ts';
import type { Target } from './match.ts';
import { type Plan, planCall } from './plan.ts';
import { pricingOf } from './price.ts';

/** A call whose body has arrived. */
export type Unplanned = {
  readonly grant: LlmGrant;
  readonly target: Target;
  readonly policy: Policy;
  readonly need: Need;
  readonly arrived: Arrived;
  readonly now: number;
};

/** Reads a body and plans its call: a small one at once, a large one in a worker. The work is taken from the URL's quota. */
export async function planBody(
  { bodyWorkers, readQuota }: Pick<LlmDeps, 'bodyWorkers' | 'readQuota'>,
  call: Unplanned,
): Promise<{ plan: Plan } | { refusal: Refusal }> {
  const { grant, target, policy, need, now, arrived } = call;
  const { raw, isJson } = arrived;
  if (!isJson || !(raw instanceof Buffer))
    return planCall({ grant, target, policy, now, content: { raw, json: undefined } });
  if (takeWork(readQuota, grant, raw)) {
    const read = readContent(raw, need, undefined);
    return 'refusal' in read ? read : planCall({ grant, target, policy, now, content: read.content });
  }
  const { method, provider } = grant;
  const { config, costLimited } = policy;
  const work = {
    ...{ bytes: raw, need, target, method, now, providerId: provider.id },
    policy: { config, costLimited },
  };
  const reply = await bodyWorkers.plan(grant, work);
  return 'refusal' in reply ? reply : { plan: planOf(reply.plan, call) };
}

/** A worker's plan, with the functions that cannot be sent between threads. */
function planOf({ body, isMetered, ...data }: PlanData, { grant, target, now }: Unplanned): Plan {
  const { provider } = grant;
  const pricing = data.model === undefined ? undefined : pricingOf(provider, data.model, now);
  let parts: readonly Buffer[] | undefined = body.map((part) =>
    Buffer.from(part.buffer as ArrayBuffer, part.byteOffset, part.byteLength),
  );
  return {
    ...data,
    pricing,
    spend: isMetered ? spendOf(provider, target.path) : undefined,
    bodyFor: (tokens) => {
      const [before = null, after] = parts ?? [];
      parts = undefined;
      return before && after ? Buffer.concat([before, Buffer.from(String(tokens)), after]) : before;
    },
  };
}
