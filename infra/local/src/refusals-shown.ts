/** The log of `start` on a terminal. */
export type Shown = {
  /** The text to print of a line of the log. Undefined: nothing. */
  readonly textOf: (line: string) => string | undefined;
  /** Prints no refused calls of an account. */
  readonly hide: (accountId: string) => void;
};

/**
 * Prints warnings as they are logged, and a short line for each refused call, so that a developer sees why a URL does not work: time, status,
 * code, field or model at fault, limit, user, and the request id.
 */
export function showRefusals(): Shown {
  const hidden = new Set<unknown>();
  return {
    hide: (accountId) => void hidden.add(accountId),
    textOf: (line) => {
      if (/^\{"level":[456]0,/.test(line)) return line;
      // Most lines are those of calls that passed.
      if (!line.includes('"code":"') || !line.includes('"msg":"call"')) return undefined;
      const call = JSON.parse(line) as Record<string, string | number | undefined>;
      return call['uses'] === undefined && !hidden.has(call['account']) ? textOf(call) : undefined;
    },
  };
}

function textOf(call: Record<string, string | number | undefined>): string {
  const { time, status, code, reason, unbounded, limit_of, budget, limit, used, needed, remaining } = call;
  const parts = [
    ...[`refused ${status} ${code}`, reason, unbounded],
    limit_of && `by the limit of ${budget === undefined ? `the ${limit_of}` : `budget ${budget}`}`,
    ...[entry('limit', limit), entry('used', used), entry('needed', needed), entry('remaining', remaining)],
    ...[
      call['model'] ?? call['server'],
      entry('user', call['external_user']),
      entry('request', call['request_id']),
    ],
  ];
  const at = new Date(Number(time)).toISOString().slice(11, 19);
  return `${at} ${parts.filter(Boolean).join(', ')}\n`;
}

const entry = (name: string, value: string | number | undefined) =>
  value === undefined ? undefined : `${name} ${value}`;
