import type { SessionGrant, SharedBudget, UsageReport, VirtualKey } from '@presign/client';
import { useMemo } from 'preact/hooks';
import { count, money, short } from '../data/format.ts';
import {
  useBudgets,
  useCalledSessions,
  useRefusals,
  useSpendByDay,
  useVirtualKeys,
} from '../data/queries.ts';
import { nameOf, shareOf, shareOfLimits } from '../data/shared-budget.ts';
import { Answer, Page } from '../parts/answer.tsx';
import { Facts, Fullness } from '../parts/facts.tsx';
import { Choice, FilterForm } from '../parts/form.tsx';
import { SpendByDay } from '../parts/spend-by-day.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { DAYS, Totals } from '../parts/totals.tsx';
import { href, type Place } from '../place.ts';

const BY = [
  ['model', 'model'],
  ['provider', 'provider'],
  ['external_user', 'user'],
] as const;
type By = (typeof BY)[number][0];

export function Overview({ params }: { params: Place['params'] }) {
  const by: By = BY.find(([each]) => each === params.by)?.[0] ?? 'model';
  const days = Number(params.days) || 30;
  const usage = useSpendByDay({ days, by });
  return (
    <Page title="Overview">
      <FilterForm path="">
        <Choice label="Spend by" name="by" value={by} options={BY} />
        <Choice label="Days" name="days" value={String(days)} options={DAYS} />
      </FilterForm>
      <Answer of={usage}>
        {(report) => (
          <>
            <Totals report={report} />
            <SpendByDay report={report} by={by} />
            <h2>Calls and refusals</h2>
            <Refusals report={report} days={days} />
          </>
        )}
      </Answer>
      <h2>Limits</h2>
      <Limits />
    </Page>
  );
}

type Outcome = { readonly name: string; readonly today: number | undefined; readonly all: number };

/** The calls that passed, and those that were refused, by code. */
function Refusals({ report, days }: { report: UsageReport; days: number }) {
  return (
    <Answer of={useRefusals(days)}>
      {({ to: today, data }) => {
        const passed = {
          name: 'passed',
          // A report that is cut lacks the last days.
          today: report.next_cursor === null ? callsOf(report.data, today) : undefined,
          all: report.total.calls,
        };
        const codes = [...new Set(data?.map(({ code }) => code))].map((code): Outcome => {
          const refused = data?.filter((each) => each.code === code) ?? [];
          return { name: code, today: callsOf(refused, today), all: callsOf(refused) };
        });
        return (
          <>
            <Table
              caption="Calls that passed, and refusals by code"
              rows={[passed, ...codes.sort((a, b) => b.all - a.all)]}
              keyOf={({ name }) => name}
              columns={[
                { head: 'Code', cell: ({ name }) => name },
                { head: 'Today (UTC)', figure: true, cell: (each) => count(each.today) },
                { head: `In ${days} days`, figure: true, cell: ({ all }) => count(all) },
              ]}
            />
            <p class="soft">
              {data === null
                ? 'Refusals are in Redis, which does not answer.'
                : 'Refusals are counted about once a second, without calls whose token is not valid.'}
            </p>
          </>
        );
      }}
    </Answer>
  );
}

type Counted = { readonly day?: string; readonly calls: number };

/** The calls of one day, or of all. */
const callsOf = (rows: readonly Counted[], day?: string): number =>
  rows.reduce((sum, each) => sum + (day === undefined || each.day === day ? each.calls : 0), 0);

/** Something with limits, and how much of them is used now. */
type Limited = {
  readonly id: string;
  readonly kind: 'shared budget' | 'virtual key' | 'URL';
  readonly name: string;
  readonly href: string;
  readonly spent: number | undefined;
  readonly held: number;
  readonly share: number;
};

/** With at least this share used, a limit is near. */
const NEAR = 0.8;
/** Rows of the table. */
const MOST_NEAR = 10;

/** The money that is held, and the fullest limits: of the first page of budgets and virtual keys, and of the URLs that were called last. */
function Limits() {
  const budgets = useBudgets();
  const keys = useVirtualKeys();
  const called = useCalledSessions();
  const all = useMemo(
    () => [
      ...(budgets.data?.pages.flatMap(({ data }) => data.flatMap(ofBudget)) ?? []),
      ...(keys.data?.pages.flatMap(({ data }) => data.flatMap(ofVirtualKey)) ?? []),
      ...(called.data?.flatMap(({ id, grants }) => grants.flatMap((grant) => ofUrl(id, grant))) ?? []),
    ],
    [budgets.data, keys.data, called.data],
  );
  const near = all.filter(({ share }) => share >= NEAR).sort((a, b) => b.share - a.share);
  const heldBy = (kind: Limited['kind']) =>
    money(all.filter((each) => each.kind === kind).reduce((sum, { held }) => sum + held, 0));
  return (
    <Answer of={budgets}>
      {() => (
        <Answer of={keys}>
          {() => (
            <Answer of={called}>
              {() => (
                <>
                  <Facts
                    of={[
                      ['Held now, URLs called last', heldBy('URL')],
                      ['Held now, virtual keys', heldBy('virtual key')],
                      ['Held now, shared budgets', heldBy('shared budget')],
                      ['Near a limit', count(near.length)],
                    ]}
                  />
                  <Table
                    caption="Near a limit"
                    rows={near.slice(0, MOST_NEAR)}
                    keyOf={({ id }) => id}
                    empty="No limit is 80 % used."
                    columns={NEAR_COLUMNS}
                  />
                  <p class="soft">
                    A call holds money in each budget that it draws on. The newest 50 budgets and 50 virtual
                    keys are read, and the URLs of the sessions with the newest calls.
                  </p>
                </>
              )}
            </Answer>
          )}
        </Answer>
      )}
    </Answer>
  );
}

const NEAR_COLUMNS: readonly Column<Limited>[] = [
  {
    head: 'Limits of',
    cell: ({ kind, name, href: to }) => [
      `${kind} `,
      <a key="name" href={to}>
        {name}
      </a>,
    ],
  },
  { head: 'Spent', figure: true, cell: ({ spent }) => money(spent) },
  { head: 'Held', figure: true, cell: ({ held }) => money(held) },
  {
    head: 'Used',
    cell: ({ kind, name, share }) => <Fullness of={`${kind} ${name}`} used={share} most={1} />,
  },
];

function ofBudget(budget: SharedBudget): Limited[] {
  const live = budget.current?.live;
  if (!live || budget.deleted_at !== null) return [];
  const named = {
    kind: 'shared budget' as const,
    id: budget.id,
    name: nameOf(budget),
    href: href('budgets'),
  };
  return [{ ...named, spent: live.spent, held: live.held, share: shareOf(budget) }];
}

function ofVirtualKey({ id, name, budget, revoked_at: revoked }: VirtualKey): Limited[] {
  if (!budget?.live || revoked !== null) return [];
  const figures = { spent: budget.live.spent, held: budget.live.held };
  return [
    {
      kind: 'virtual key',
      id,
      name,
      href: href('keys'),
      ...figures,
      share: shareOfLimits(budget, budget.live),
    },
  ];
}

/** A URL that has ended has no limit to be near. One that is spent has not ended: its limit can be raised. */
function ofUrl(session: string, grant: SessionGrant): Limited[] {
  const { id, live, status } = grant;
  if (!live || (status !== 'active' && status !== 'exhausted')) return [];
  const figures = { spent: live.spent, held: live.held, share: shareOfLimits(grant, live) };
  return [{ kind: 'URL', id, name: short(id), href: href(`sessions/${session}`), ...figures }];
}
