import type { Input, OperationId, Presign } from './methods.ts';
import { PresignError } from './presign-error.ts';
import { aligned, CommandError, connect, type Io, UsageError } from './terminal.ts';

/** A command that shows what the issuer knows. */
export type Read = {
  readonly summary: string;
  readonly options: Readonly<Record<string, ReadOption>>;
  readonly head: readonly string[];
  /** Asks the issuer, with the fields of its options. */
  readonly ask: (presign: Presign, fields: Readonly<Record<string, string>>) => Promise<Shown>;
};

type ReadOption = {
  /** The name of its value in the help. */
  readonly value: string;
  readonly about: string;
  /** The field of the API, if it has another name. */
  readonly field?: string;
};

/** Entries as the API has them, and their cells in a table. */
type Shown = {
  readonly entries: readonly object[];
  readonly rows: readonly (readonly (string | number | null)[])[];
  /** There are more. */
  readonly isCut: boolean;
};

const USER: ReadOption = { value: 'USER', about: 'only those of this external_user', field: 'external_user' };
const LIMIT: ReadOption = { value: 'COUNT', about: 'the most to show, at most 100; default 20' };
const FROM: ReadOption = {
  value: 'TIME',
  about: 'settled then or later: a day such as 2026-01-31, ISO 8601 or Unix seconds',
};
const TO: ReadOption = { value: 'TIME', about: 'settled before then' };

export const READS: ReadonlyMap<string, Read> = new Map<string, Read>([
  [
    'calls',
    {
      summary: 'Show calls, the newest first: how they ended and their cost',
      options: {
        outcome: {
          value: 'OUTCOME',
          about: 'passed, failed, refused, all, or a cause such as provider_error',
        },
        user: USER,
        model: { value: 'MODEL', about: 'only those of this model' },
        from: FROM,
        to: TO,
        limit: LIMIT,
      },
      head: ['TIME', 'OUTCOME', 'STATUS', 'USER', 'MODEL OR TOOL', 'COST', 'REQUEST'],
      ask: async (presign, fields) => {
        const { data, next_cursor } = await presign.listCalls(asInput<'listCalls'>(fields));
        const rows = data.map((call) => [
          timeOf(call.started_at),
          call.failure ?? call.outcome,
          call.status,
          call.external_user,
          call.tool ?? call.model,
          dollars(call.cost),
          call.request_id,
        ]);
        return { entries: data, rows, isCut: next_cursor !== null };
      },
    },
  ],
  [
    'usage',
    {
      summary: 'Sum calls and their cost',
      options: {
        by: {
          value: 'DIMENSIONS',
          about: 'such as user, model, metadata.team or day,provider; default user',
          field: 'group_by',
        },
        user: USER,
        from: { ...FROM, about: `${FROM.about}; default 30 days ago` },
        to: TO,
        timezone: { value: 'ZONE', about: 'of days and months, such as Europe/Berlin; default UTC' },
        top: {
          value: 'COUNT',
          about: 'only the groups that cost most, at most 1000, the highest cost first',
        },
        limit: { value: 'COUNT', about: 'the most groups to show' },
      },
      head: ['GROUP', 'CALLS', 'FAILED', 'INPUT TOKENS', 'OUTPUT TOKENS', 'COST'],
      ask: async (presign, { group_by = 'external_user', ...fields }) => {
        const by = group_by.split(',').map((name) => (name === 'user' ? 'external_user' : name));
        const sums = await presign.getUsage(asInput<'getUsage'>({ ...fields, group_by: by.join(',') }));
        const { data, total, next_cursor } = sums as unknown as Sums;
        const cells = (sum: Sum, group: string) => [
          group,
          ...[sum.calls, sum.failed_calls, sum.input_tokens, sum.output_tokens],
          dollars(sum.cost),
        ];
        const rows = data.map((sum) => cells(sum, by.map((name) => dimensionOf(sum, name)).join(', ')));
        return { entries: data, rows: [...rows, cells(total, 'all')], isCut: next_cursor !== null };
      },
    },
  ],
  [
    'budgets',
    {
      summary: 'Show budgets, and what is spent of each',
      options: { user: USER, limit: LIMIT },
      head: ['BUDGET', 'SCOPE', 'WINDOW', 'LIMIT', 'SPENT', 'USED'],
      ask: async (presign, fields) => {
        const { data, next_cursor } = await presign.listBudgets(asInput<'listBudgets'>(fields));
        const rows = data.map((budget) => [
          budget.name ?? budget.id,
          Object.entries(budget.scope ?? {})
            .map(([name, value]) => `${name}=${String(value)}`)
            .join(' '),
          budget.window,
          budget.cost_limit === null ? null : dollars(budget.cost_limit),
          budget.current && dollars(budget.current.settled.spent),
          budget.current && budget.current.settled.used,
        ]);
        return { entries: data, rows, isCut: next_cursor !== null };
      },
    },
  ],
  [
    'refusals',
    {
      summary: 'Count refused calls by day and code',
      options: {
        days: { value: 'COUNT', about: 'how many days to read, the present one included; default 30' },
      },
      head: ['DAY', 'CODE', 'CALLS'],
      ask: async (presign, fields) => {
        const { data } = await presign.getRefusals(asInput<'getRefusals'>(fields));
        return {
          entries: data,
          rows: data.map(({ day, code, calls }) => [day, code, calls]),
          isCut: false,
        };
      },
    },
  ],
]);

type Sum = Readonly<Record<string, unknown>> & {
  readonly metadata?: Readonly<Record<string, string | null>>;
  readonly calls: number;
  readonly failed_calls: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number;
};
type Sums = { readonly data: readonly Sum[]; readonly total: Sum; readonly next_cursor: string | null };

function dimensionOf({ metadata = {}, ...sum }: Sum, name: string): string {
  const value = name.startsWith('metadata.') ? metadata[name.slice('metadata.'.length)] : sum[name];
  return String(value ?? NONE);
}

/** The issuer validates the texts of a query, and names the field that is wrong. */
const asInput = <Id extends OperationId>(fields: Readonly<Record<string, string>>) =>
  fields as unknown as Omit<Input<Id>, 'format'>;

/** Runs a command that shows something. @throws UsageError, CommandError, PresignError */
export async function runRead(read: Read, args: readonly string[], io: Io): Promise<void> {
  const { fields, isJson } = readOptions(read, args);
  const { entries, rows, isCut } = await read
    .ask(connect(io, 'read'), fields)
    .catch((error: unknown) => Promise.reject(byOption(read, error)));
  if (isJson) for (const entry of entries) io.out(JSON.stringify(entry));
  else for (const line of aligned([read.head, ...rows.map(cellsOf)])) io.out(line);
  if (isCut) io.note('There are more. A larger --limit shows them.');
}

/** A refusal of a field names the option that sent it. */
function byOption({ options }: Read, error: unknown): unknown {
  if (!(error instanceof PresignError) || error.param == null) return error;
  const { param, message } = error;
  const [option] = Object.entries(options).find(([name, { field = name }]) => field === param) ?? [];
  const isNamed = option !== undefined && message.startsWith(`${param}: `);
  return isNamed ? new CommandError(`--${option}${message.slice(param.length)}`) : error;
}

function readOptions(read: Read, args: readonly string[]) {
  const fields: Record<string, string> = {};
  let isJson = false;
  for (let at = 0; at < args.length; at++) {
    const [, name, joined] = /^--([^=]+)(?:=(.*))?$/s.exec(args[at] ?? '') ?? [];
    if (name === undefined) throw new UsageError(`unexpected argument "${args[at]?.slice(0, 40)}"`);
    if (name === 'json' && joined === undefined) {
      isJson = true;
      continue;
    }
    const option = Object.hasOwn(read.options, name) ? read.options[name] : undefined;
    if (!option) throw new UsageError(`unknown option --${name.slice(0, 40)}`);
    const value = joined ?? args[++at];
    if (value === undefined || value === '') throw new UsageError(`--${name} needs a value`);
    fields[option.field ?? name] = value;
  }
  return { fields, isJson };
}

/** The help of a command. */
export function readHelp(name: string, { summary, options }: Read): string {
  const lines = Object.entries(options).map(([option, { value, about }]) => [`--${option} ${value}`, about]);
  return [
    `Usage: presign ${name} [options]`,
    '',
    `${summary}. It needs an API key with the scope read.`,
    '',
    ...aligned([...lines, ['--json', 'prints each entry as the API has it, one a line']]).map(
      (line) => `  ${line}`,
    ),
  ].join('\n');
}

const cellsOf = (row: readonly (string | number | null)[]) => row.map((cell) => String(cell ?? NONE));

const NONE = '–';

const timeOf = (seconds: number): string => `${new Date(seconds * 1_000).toISOString().slice(0, 19)}Z`;

const dollars = (microdollars: number | null): string =>
  microdollars === null ? 'unknown' : `$${(microdollars / 1_000_000).toFixed(6)}`;
