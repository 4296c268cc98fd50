/**
 * LLM calls that were sent and have no byte of an answer yet, by provider. Without this, a hanging provider would show no failed call for
 * minutes.
 */
export type Waits = {
  readonly begin: (provider: string) => Wait;
  /** `silentMs`: how long calls have been waiting since any of them got a first byte; 0 if no call waits. */
  readonly all: () => Iterable<{
    readonly provider: string;
    readonly calls: number;
    readonly silentMs: number;
  }>;
};

/** One call. Both may be called again, and in either order. */
type Wait = {
  /** The first byte of its answer has come. */
  readonly answered: () => void;
  /** It has ended, with an answer or without. */
  readonly ended: () => void;
};

/** @param now milliseconds of a clock that never goes back */
export function countWaits(now: () => number = () => performance.now()): Waits {
  const providers = new Map<string, { calls: number; sinceMs: number }>();
  const begin = (provider: string): Wait => {
    const known = providers.get(provider) ?? { calls: 0, sinceMs: 0 };
    if (known.calls === 0) known.sinceMs = now();
    known.calls += 1;
    providers.set(provider, known);
    let waits = true;
    const ended = () => {
      if (waits) known.calls -= 1;
      waits = false;
    };
    const answered = () => {
      if (waits) known.sinceMs = now();
      ended();
    };
    return { answered, ended };
  };
  return {
    begin,
    all: () =>
      Array.from(providers, ([provider, { calls, sinceMs }]) => ({
        provider,
        calls,
        silentMs: calls === 0 ? 0 : now() - sinceMs,
      })),
  };
}
