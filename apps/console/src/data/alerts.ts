import type { Alert, Input } from '@presign/client';
import { money, readMoney, writeMoney } from './format/format.ts';

type Condition = Input<'createAlert'>['condition'];
type Fields = Readonly<Record<string, string | undefined>>;

/** Conditions by their names in the API, in words. */
export const KINDS = [
  ['spend', 'spend reaches an amount'],
  ['spend_jump', 'spend is a multiple of before'],
  ['errors', 'calls fail'],
  ['budget', 'a budget is nearly used'],
] as const;
export type Kind = (typeof KINDS)[number][0];

export const WINDOWS = [
  ['day', 'a day'],
  ['hour', 'an hour'],
] as const;

const windowOf = ({ window }: { readonly window: string }) =>
  WINDOWS.find(([each]) => each === window)?.[1] ?? window;

export const kindOf = (condition: Alert['condition']): Kind =>
  KINDS.map(([kind]) => kind).find((kind) => condition[kind] !== undefined) ?? 'spend';

/** When an alert fires: "Spend of a day reaches $50.00". */
export function inWords(condition: Alert['condition'], nameOfBudget: (id: string) => string): string {
  const { budget, spend, spend_jump: jump, errors } = condition;
  if (budget) return `${budget.percent} % of ${nameOfBudget(budget.budget)} is used`;
  if (spend) return `Spend of ${windowOf(spend)} reaches ${money(spend.amount)}`;
  if (jump)
    return `Spend of ${windowOf(jump)} is ${jump.factor} times the mean of 7 days, and at least ${money(jump.at_least)}`;
  if (!errors) return '–';
  const calls = `${errors.calls} calls${errors.provider === undefined ? '' : ` of ${errors.provider}`}`;
  return `${errors.percent} % of at least ${calls} fail within ${errors.minutes} minutes`;
}

/** A figure of an alert in its unit. */
export const figureOf = ({ condition }: Pick<Alert, 'condition'>, figure: number | null): string => {
  if (figure === null) return '–';
  return condition.spend || condition.spend_jump ? money(figure) : `${figure} %`;
};

/** The texts of a form that shows a condition. */
export function textsOf({ budget, spend, spend_jump: jump, errors }: Alert['condition']): Fields {
  return {
    budget: budget?.budget,
    percent: String((budget ?? errors)?.percent ?? ''),
    window: (spend ?? jump)?.window,
    amount: spend && writeMoney(spend.amount),
    factor: jump && String(jump.factor),
    at_least: jump && writeMoney(jump.at_least),
    calls: errors && String(errors.calls),
    minutes: errors && String(errors.minutes),
    provider: errors?.provider,
  };
}

/**
 * Reads the condition of a form.
 * @param timeZone where a day of spend begins
 * @throws Error that names the field
 */
export function conditionOf(fields: Fields, timeZone: string): Condition {
  const kind = KINDS.find(([each]) => each === fields['kind'])?.[0] ?? 'spend';
  const window = fields['window'] === 'hour' ? 'hour' : 'day';
  const zone = { window, time_zone: timeZone } as const;
  const percent = Number(fields['percent']);
  if (kind === 'budget')
    return { budget: { budget: fields['budget_id'] ?? fields['budget'] ?? '', percent } };
  if (kind === 'spend') return { spend: { ...zone, amount: amountOf('Amount', fields['amount']) } };
  if (kind === 'spend_jump') {
    const [factor, least] = [Number(fields['factor']), amountOf('At least', fields['at_least'])];
    return { spend_jump: { ...zone, factor, at_least: least } };
  }
  const { calls, minutes, provider = null } = fields;
  return { errors: { percent, calls: Number(calls), minutes: Number(minutes), provider } };
}

function amountOf(label: string, text = ''): number {
  const amount = readMoney(text);
  if (amount === undefined) throw new Error(`${label}: expected dollars such as 25 or 0.50.`);
  return amount;
}

/** The alerts that an account without alerts is offered. */
export const SUGGESTED: readonly { readonly name: string; readonly condition: Alert['condition'] }[] = [
  { name: 'Daily spend', condition: { spend: { window: 'day', time_zone: 'UTC', amount: 50_000_000 } } },
  {
    name: 'Spend jumps',
    condition: { spend_jump: { window: 'hour', time_zone: 'UTC', factor: 3, at_least: 5_000_000 } },
  },
  { name: 'Provider fails', condition: { errors: { percent: 10, calls: 20, minutes: 15 } } },
];
