import { type LastCall, LIMIT_NAMES, limitKind, showLimits } from '@presign/schema';
import { html } from 'hono/html';
import { fact, type Html } from './page.ts';
import type { Live } from './read-live.ts';

/** Says what is left of a URL, and when it ends. */
export function liveFacts({ own, isRevoked, endsMs }: Live): Html {
  const { maxUses, used, costLimitMicrousd, settledMicrousd, heldMicrousd, lastCall } = own;
  const last = lastCall === undefined ? undefined : (JSON.parse(lastCall) as LastCall);
  return html`<h2>What is left</h2><dl>${[
    fact('State', isRevoked ? 'revoked: every call is refused' : 'live'),
    fact('Ends', utc(endsMs)),
    fact('Calls', maxUses === null ? `${count(used)} made, no limit` : left(maxUses, used, count)),
    fact(
      'Money',
      costLimitMicrousd === null
        ? `${dollars(settledMicrousd)} spent, no limit`
        : left(costLimitMicrousd, settledMicrousd + heldMicrousd, dollars),
    ),
    ...(heldMicrousd > 0 ? [fact('Held by calls under way', dollars(heldMicrousd))] : []),
    ...rates(own),
    ...(last
      ? [fact('The last call failed', `status ${last.status}, ${last.code}, ${utc(last.at * 1000)}`)]
      : []),
  ]}</dl>`;
}

const left = (most: number, used: number, show: (value: number) => string) =>
  `${show(Math.max(0, most - used))} of ${show(most)} left`;

/** The limits that are no sum over the life of the URL. */
function rates(own: Live['own']): Html[] {
  const limits = showLimits(own);
  return LIMIT_NAMES.flatMap((name) => {
    const most = limits[name];
    if (name === 'max_uses' || name === 'cost_limit' || most === null) return [];
    const { rate } = limitKind(name);
    if (!rate) return [fact('Calls at once', `at most ${count(most)}`)];
    return [fact(rate.unit === undefined ? 'Pace' : `Pace in ${rate.unit}`, `${count(most)} ${rate.each}`)];
  });
}

const utc = (ms: number): Html => {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')} UTC</time>`;
};

const count = (value: number): string => value.toLocaleString('en-US');

/** Microdollars as dollars with all their digits, at least two of them after the point. */
function dollars(microusd: number): string {
  const part = String(microusd % 1_000_000).padStart(6, '0');
  return `$${count(Math.floor(microusd / 1_000_000))}.${part.replace(/0{1,4}$/, '')}`;
}
