import type { UsageReport } from '@presign/client';
import { useUsage } from '../../api/queries.ts';
import { cents, count, money, percent } from '../../data/format/format.ts';
import { rangeBefore } from '../../data/format/range.ts';
import type { UsageAsked } from '../../data/usage.ts';
import { Facts } from './facts.tsx';

type TotalsProps = {
  readonly report: UsageReport;
  /** The query of the same calls without groups. */
  readonly asked: UsageAsked;
};

export const Totals = ({ report: { total }, asked }: TotalsProps) => (
  <div class="large">
    <Facts
      of={[
        ['Spent', money(total.cost)],
        [BEFORE, <Before key="before" asked={asked} now={total.cost} />],
        ['Calls', count(total.calls)],
        ['Failed', percent(total.failed_calls, total.calls)],
        ['Calls of unknown cost', count(total.calls_of_unknown_cost)],
        ['Input tokens', count(total.input_tokens)],
        ['Output tokens', count(total.output_tokens)],
      ]}
    />
  </div>
);

/** The name of the figure below. */
export const BEFORE = 'Before, in as long a time';

type BeforeProps = { readonly asked: UsageAsked; readonly now: number };

/** The spending of the time before, and the change since. */
export function Before({ asked, now }: BeforeProps) {
  const { data } = useUsage({ ...asked, range: rangeBefore(asked.range) });
  if (!data) return <>…</>;
  const { cost: then } = data.total;
  return (
    <>
      {cents(then)} {then > 0 && <small class="soft">{change(now, then)}</small>}
    </>
  );
}

const change = (now: number, then: number): string =>
  `${now < then ? '−' : '+'}${Math.abs((now / then - 1) * 100).toFixed(0)} %`;
