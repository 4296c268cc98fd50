const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** Seconds as a number of the largest unit that divides them: `15 minutes`. */
export function writeSpan(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0) ?? ['second', 1];
  const amount = seconds / size;
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`;
}

/** Reads a time such as `15 minutes`, `2 h` or `90` (seconds), in seconds. Undefined: not a time. */
export function readSpan(text: string): number | undefined {
  const [, amount, named = 'second'] = /^(\d{1,9})\s*([a-z]+)?$/.exec(text.trim().toLowerCase()) ?? [];
  const [, size] = UNITS.find(([unit]) => [unit, `${unit}s`, unit[0]].includes(named)) ?? [];
  return amount === undefined || size === undefined ? undefined : Number(amount) * size;
}
