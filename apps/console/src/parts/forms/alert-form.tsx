import type { Alert, SharedBudget, Webhook } from '@presign/client';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useWebhooks } from '../../api/developer-queries.ts';
import { useBudgetList } from '../../api/queries.ts';
import type { Whole } from '../../api/read-all.ts';
import { KINDS, type Kind, kindOf, textsOf, WINDOWS } from '../../data/alerts.ts';
import { nameOf } from '../../data/shared-budget.ts';
import { Answer } from '../page/answer.tsx';
import { Choice, Field } from './form.tsx';

type Shown = Pick<Alert, 'name' | 'condition'> & Partial<Pick<Alert, 'webhook'>>;

/** The fields of an alert. Those of its condition follow the choice of its kind. */
export function AlertFields({ alert }: { alert: Shown }) {
  const [kind, setKind] = useState<Kind>(kindOf(alert.condition));
  const onInput = ({ target }: JSX.TargetedInputEvent<HTMLDivElement>) => {
    if (!(target instanceof HTMLSelectElement) || target.name !== 'kind') return;
    setKind(KINDS.find(([each]) => each === target.value)?.[0] ?? 'spend');
  };
  return (
    <div onInput={onInput}>
      <Field label="Name" name="name" required value={alert.name} />
      <Choice label="Fires when" name="kind" value={kind} options={KINDS} />
      <ConditionFields key={kind} kind={kind} condition={alert.condition} />
      <Receiver webhook={alert.webhook ?? null} />
    </div>
  );
}

function ConditionFields({ kind, condition }: { kind: Kind; condition: Alert['condition'] }) {
  const { window, amount, factor, at_least: least, calls, minutes, provider, ...given } = textsOf(condition);
  const percent = kind === kindOf(condition) ? given['percent'] : undefined;
  const windows = <Choice label="Spend of" name="window" value={window ?? 'day'} options={WINDOWS} />;
  if (kind === 'budget')
    return (
      <>
        <Budgets value={given['budget']} />
        <Bounded label="Percent used" name="percent" value={percent ?? '80'} min={1} max={100} />
      </>
    );
  if (kind === 'spend')
    return (
      <>
        {windows}
        <Field label="Amount in dollars" name="amount" required value={amount ?? '50'} />
      </>
    );
  if (kind === 'spend_jump')
    return (
      <>
        {windows}
        <Bounded label="Times the mean of 7 days" name="factor" value={factor ?? '3'} min={1.1} max={1_000} />
        <Field label="At least, in dollars" name="at_least" required value={least ?? '5'} />
      </>
    );
  return (
    <>
      <Bounded label="Percent of calls" name="percent" value={percent ?? '10'} min={1} max={100} />
      <Bounded label="With at least so many calls" name="calls" value={calls ?? '20'} min={1} max={10_000} />
      <Bounded label="In minutes" name="minutes" value={minutes ?? '15'} min={5} max={60} />
      <Field label="Provider" name="provider" value={provider} hint="Empty: all." />
    </>
  );
}

type BoundedProps = {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly min: number;
  readonly max: number;
};

const Bounded = ({ label, min, max, ...field }: BoundedProps) => (
  <Field label={`${label} (${min} to ${max.toLocaleString('en-US')})`} required {...field} />
);

/** Budgets that have figures: no templates, and none that is deleted. */
const Budgets = ({ value }: { value: string | undefined }) => (
  <Answer of={useBudgetList()}>{(list) => <BudgetChoice of={list} value={value} />}</Answer>
);

function BudgetChoice({
  of: { rows, isCut },
  value,
}: {
  of: Whole<SharedBudget>;
  value: string | undefined;
}) {
  const live = rows.filter(({ kind, deleted_at: end }) => kind === 'budget' && end === null);
  if (live.length === 0 && !isCut)
    return <p class="soft">There is no budget yet. Create one under Limits.</p>;
  const options = live.map((budget) => [budget.id, nameOf(budget)] as const);
  return (
    <>
      {(live.length > 0 || value !== undefined) && (
        <Choice label="Budget" name="budget" value={value ?? live[0]?.id} options={options} />
      )}
      {isCut && (
        <Field label="Or another budget, by its id" name="budget_id" hint="The list has the newest 1,000." />
      )}
    </>
  );
}

/** Where an endpoint leads, in words. */
export const nameOfWebhook = ({ format, url, description }: Webhook): string =>
  description ?? (format === 'slack' ? `Slack (${new URL(url).host})` : url);

function Receiver({ webhook }: { webhook: string | null }) {
  const endpoints = useWebhooks().data?.pages.flatMap(({ data }) => data) ?? [];
  const options = endpoints.map((each) => [each.id, nameOfWebhook(each)] as const);
  return (
    <Choice
      label="Sent to"
      name="webhook"
      value={webhook ?? ''}
      options={[['', 'no endpoint: it shows here alone'], ...options]}
    />
  );
}
