import type { UsageReport } from '@presign/client';
import { count, money } from '../data/format.ts';
import { Facts } from './facts.tsx';

/** The times that reports are shown for. */
export const DAYS = ['1', '7', '30', '90'].map((days) => [days, days] as const);

export const Totals = ({ report: { total } }: { report: UsageReport }) => (
  <div class="large">
    <Facts
      of={[
        ['Spent', money(total.cost)],
        ['Calls', count(total.calls)],
        ['Calls of unknown cost', count(total.calls_of_unknown_cost)],
        ['Input tokens', count(total.input_tokens)],
        ['Output tokens', count(total.output_tokens)],
      ]}
    />
  </div>
);
