/** The figure of an alert in one window, and whether the condition holds there. */
export type Reading = {
  /** Orders the windows: when it begins, in Unix ms. */
  readonly window: number;
  readonly startsAt: Date | null;
  /** Null: it has no end. */
  readonly endsAt: Date | null;
  readonly value: number;
  readonly threshold: number;
  readonly holds: boolean;
};

/** Windows that are over, in their order, and the one that counts now. */
export type Readings = {
  readonly past: readonly Reading[];
  /** Undefined: there is nothing to measure. */
  readonly present: Reading | undefined;
};

/** The memory of an alert, in Unix ms. */
export type Standing = {
  readonly isFiring: boolean;
  /** The newest window in which the condition held. */
  readonly heldWindow: number;
  /** When it held last. */
  readonly heldAt: number;
};

/** A firing begins or ends. */
export type Turn =
  | { readonly type: 'fired'; readonly reading: Reading }
  | { readonly type: 'resolved'; readonly reading: Reading | undefined };

/**
 * Compares an alert with its figures. A window fires at most once, unless the firing was resolved within it and the condition
 * holds again. Calls that reach the ledger late can make a window fire that is over: then the present one resolves it.
 * @param restMs how long the condition must not hold before a firing ends. 0: each window is judged by itself, and its end ends the firing
 */
export function judge(
  before: Standing,
  { past, present }: Readings,
  { nowMs, restMs }: { readonly nowMs: number; readonly restMs: number },
): { readonly turns: readonly Turn[]; readonly after: Standing } {
  const turns: Turn[] = [];
  let { isFiring, heldWindow, heldAt } = before;
  let held = past.find(({ window }) => window === heldWindow);
  const holds = (reading: Reading, at: number) => {
    const isNext = restMs === 0 && reading.window > heldWindow;
    // Its end resolved the window before, so the message has the last figure of that one.
    if (isFiring && isNext) turns.push({ type: 'resolved', reading: held });
    if (!isFiring || isNext) turns.push({ type: 'fired', reading });
    isFiring = true;
    held = reading;
    heldWindow = Math.max(heldWindow, reading.window);
    heldAt = at;
  };
  const resolves = (reading: Reading | undefined) => {
    turns.push({ type: 'resolved', reading });
    isFiring = false;
  };
  for (const each of past.filter(({ window }) => window > before.heldWindow)) {
    if (each.holds) holds(each, each.endsAt?.getTime() ?? nowMs);
    else if (isFiring && restMs === 0) resolves(each);
  }
  if (present?.holds) holds(present, nowMs);
  else if (isFiring && nowMs - heldAt >= restMs) resolves(present);
  return { turns, after: { isFiring, heldWindow, heldAt } };
}
