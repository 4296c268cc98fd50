import type { UsageReport } from '@presign/client';
import { count, money, percent } from '../data/format/format.ts';
import { Facts } from './facts.tsx';

export const Totals = ({ report: { total } }: { report: UsageReport }) => (
  <div class="large">
    <Facts
      of={[
        ['Spent', money(total.cost)],
        ['Calls', count(total.calls)],
        ['Failed', percent(total.failed_calls, total.calls)],
        ['Calls of unknown cost', count(total.calls_of_unknown_cost)],
        ['Input tokens', count(total.input_tokens)],
        ['Output tokens', count(total.output_tokens)],
      ]}
    />
  </div>
);
