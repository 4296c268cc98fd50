/** An amount in dollars. A number counts as JavaScript prints it. */
export type Dollars = number | string;

/**
 * The whole microdollars of an amount: `microdollars(0.05)` and `microdollars('0.05')` are 50,000.
 * @throws TypeError when it would have to round, as for `0.1 + 0.2`
 */
export function microdollars(dollars: Dollars): number {
  const [, whole = '', part = ''] = /^(\d{1,10})(?:\.(\d{1,6})0{0,20})?$/.exec(String(dollars)) ?? [];
  const amount = Number(whole) * 1_000_000 + Number(part.padEnd(6, '0'));
  if (whole !== '' && Number.isSafeInteger(amount)) return amount;
  const advice = typeof dollars === 'number' && dollars > 0 ? ' Round it, as in amount.toFixed(6).' : '';
  const given = String(dollars).slice(0, 40);
  throw new TypeError(`expected dollars of 0 or more with at most six decimals, not ${given}.${advice}`);
}
