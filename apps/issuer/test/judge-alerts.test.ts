import { describe, expect, test } from 'vitest';
import { judge, type Reading } from '../src/alerts/judge.ts';

/** A reading of the window of this number. It holds at 10. */
const of = (window: number, value: number): Reading => ({
  window,
  startsAt: new Date(window),
  endsAt: new Date(window + 1),
  value,
  threshold: 10,
  holds: value >= 10,
});
const firing = { isFiring: true, heldWindow: 1, heldAt: 1 };
const times = { nowMs: 9, restMs: 0 };
const shown = (turns: ReturnType<typeof judge>['turns']) =>
  turns.map(({ type, reading }) => [type, reading?.window, reading?.value]);

describe('an alert firing that ends has the figure of the window', () => {
  test('that is over, even if the condition also holds in the next one', () => {
    const { turns } = judge(firing, { past: [of(1, 30)], present: of(2, 12) }, times);
    expect(shown(turns)).toEqual([
      ['resolved', 1, 30],
      ['fired', 2, 12],
    ]);
  });

  test('in which the condition stopped holding, even if it holds again in a later one', () => {
    const { turns } = judge(firing, { past: [of(1, 30), of(2, 4)], present: of(3, 12) }, times);
    expect(shown(turns)).toEqual([
      ['resolved', 2, 4],
      ['fired', 3, 12],
    ]);
  });
});
