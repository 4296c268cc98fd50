import type { SharedBudget } from '@presign/client';
import { useContext } from 'preact/hooks';
import { issuerTime, presign } from '../../api/api.ts';
import { MOST_READ, type Whole } from '../../api/read-all.ts';
import { emptyAt } from '../../data/forecast.ts';
import {
  count,
  dayName,
  hourName,
  limit,
  money,
  readMoney,
  usedOf,
  writeMoney,
} from '../../data/format/format.ts';
import { dayOf, wallOf } from '../../data/format/range.ts';
import { figuresOf, metadataOf, nameOf, shareOf, startOf } from '../../data/shared-budget.ts';
import { Action } from '../forms/action.tsx';
import { Field } from '../forms/form.tsx';
import { Answer, type Asked } from '../page/answer.tsx';
import { ApiKeyName, Fullness, NotLive, User, useZone, VirtualKeyName } from '../page/facts.tsx';
import { hrefOf } from '../page/place.ts';
import { Rights } from '../page/rights.ts';
import { type Column, Table } from './table.tsx';

type BudgetTableProps = {
  readonly of: Asked<Whole<SharedBudget>>;
  readonly empty: string;
  /** Whether a budget belongs here. Left out: all that are not deleted. */
  readonly isShown?: (budget: SharedBudget) => boolean;
  readonly caption?: string;
  /** Whether all of them are of one user, whom the page names. */
  readonly isOfOne?: true;
};

/** Shared budgets, the fullest first, with the buttons that change them. */
export function BudgetTable({
  of,
  empty,
  isShown = ({ deleted_at: end }) => end === null,
  caption = 'Shared budgets',
  isOfOne,
}: BudgetTableProps) {
  const can = useContext(Rights);
  const columns = isOfOne ? COLUMNS.filter((each) => each !== COVERS) : COLUMNS;
  return (
    <Answer of={of}>
      {({ rows, isCut }) => {
        const shown = rows.filter(isShown).toSorted((a, b) => shareOf(b) - shareOf(a));
        // The table is shown even without rows, because an open dialog keeps its row and its column.
        const areDeleted = shown.length > 0 && shown.every(({ deleted_at: end }) => end !== null);
        const isChanged = can('admin') && !areDeleted;
        return (
          <>
            {shown.some(({ current }) => current?.live === null) && <NotLive />}
            <Table
              rows={shown}
              caption={caption}
              keyOf={({ id }) => id}
              empty={empty}
              columns={isChanged ? [...columns, CHANGE] : columns}
              isCut={isCut}
              isDense
            />
            {isCut && <p class="soft">There are more budgets: these are of the newest {count(MOST_READ)}.</p>}
          </>
        );
      }}
    </Answer>
  );
}

const COVERS: Column<SharedBudget> = { head: 'Draws on it', cell: ({ scope }) => <Covers scope={scope} /> };

/** The columns that answer first come first, because the others may be outside of a narrow window. */
const COLUMNS: readonly Column<SharedBudget>[] = [
  {
    head: 'Budget',
    cell: (budget) => (
      <a href={hrefOf('limits', budget.id)}>
        {budget.deleted_at === null ? nameOf(budget) : `${nameOf(budget)} (deleted)`}
      </a>
    ),
    sort: nameOf,
  },
  COVERS,
  {
    head: 'Full',
    cell: (each) => <Fullness of={nameOf(each)} used={shareOf(each)} most={1} />,
    sort: (each) => -shareOf(each),
  },
  { head: 'At this pace', cell: (each) => <Empty budget={each} /> },
  {
    head: 'Spent',
    figure: true,
    cell: (each) => money(each.current && figuresOf(each).spent),
    sort: (each) => figuresOf(each).spent,
  },
  {
    head: 'Limit',
    figure: true,
    cell: (each) => limit(each.cost_limit, money),
    sort: (each) => each.cost_limit ?? -1,
  },
  { head: 'Resets', cell: ({ current }) => <ToTheMinute at={current?.ends_at ?? null} /> },
  { head: 'Held', figure: true, cell: ({ current }) => money(current?.live?.held) },
  {
    head: 'Uses',
    figure: true,
    cell: (each) => usedOf(each.current && figuresOf(each).used, each.max_uses, count),
  },
  {
    head: 'Tokens',
    figure: true,
    cell: (each) => usedOf(each.current && figuresOf(each).tokens, each.tokens, count),
  },
  { head: 'Window', cell: ({ window }) => window },
];

const CHANGE: Column<SharedBudget> = {
  head: 'Change',
  actions: true,
  cell: (budget) =>
    budget.deleted_at === null && (
      <>
        <ChangeBudget budget={budget} />
        <DeleteBudget budget={budget} />
      </>
    ),
};

/** A later day has another year, or no date at all. */
const YEAR = 365 * 86_400;

/** When the money of a budget will be spent at the present rate of its window. */
export function Empty({ budget }: { budget: SharedBudget }) {
  const zone = useZone();
  const { current, cost_limit: most } = budget;
  if (!current || most === null) return <>–</>;
  const { spent } = figuresOf(budget);
  if (spent >= most) return <b class="status failed">empty</b>;
  const now = issuerTime();
  const at = emptyAt({ starts_at: startOf(budget), ends_at: current.ends_at }, spent, most, now);
  if (at === undefined) return <>lasts</>;
  return <>{at - now > YEAR ? 'lasts over a year' : `empty on ${dayName(dayOf(at, zone))}`}</>;
}

/** A moment of this year or the next, short enough for a column. */
function ToTheMinute({ at }: { at: number | null }) {
  const zone = useZone();
  if (at === null) return <>–</>;
  return <time dateTime={new Date(at * 1000).toISOString()}>{hourName(wallOf(at * 1000, zone))}</time>;
}

export function Covers({ scope }: Pick<SharedBudget, 'scope'>) {
  const { account, api_key: apiKey, virtual_key: virtualKey, external_user: user, metadata } = scope;
  if (account) return <>all URLs of the account</>;
  if (apiKey !== undefined)
    return (
      <>
        API key <ApiKeyName id={apiKey} />
      </>
    );
  if (virtualKey !== undefined)
    return (
      <>
        virtual key <VirtualKeyName id={virtualKey} />
      </>
    );
  if (metadata) return <>URLs with metadata: {metadataOf(metadata)}</>;
  if (user === '*') return <>each user</>;
  return (
    <>
      user <User of={user ?? null} />
    </>
  );
}

/** Dollars of a form in microdollars. Empty: no limit. */
export function costOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const amount = readMoney(text);
  if (amount === undefined)
    throw new Error(
      'Limit: expected dollars up to 9007199254.740991 with at most six decimals, such as 25 or 0.50.',
    );
  return amount;
}

export const tokensOf = (text: string | undefined) => (text === undefined ? null : Number(text));
export const usesOf = (text: string | undefined) => (text === undefined ? null : Number(text));
const textOf = (limited: number | null) => (limited === null ? '' : String(limited));

export const LimitFields = ({ budget }: { budget?: SharedBudget }) => (
  <>
    <Field
      label="Limit in dollars"
      name="cost"
      value={budget?.cost_limit == null ? '' : writeMoney(budget.cost_limit)}
      hint={`Empty: no limit. ${budget ? 'It holds from the next call on.' : 'It limits URLs that are issued from now on.'}`}
    />
    <Field
      label="Uses"
      name="uses"
      type="number"
      value={textOf(budget?.max_uses ?? null)}
      hint="Empty: no limit."
    />
    <Field
      label="Tokens"
      name="tokens"
      type="number"
      value={textOf(budget?.tokens ?? null)}
      hint="Tokens of input and output together. Empty: no limit."
    />
  </>
);

export const ChangeBudget = ({ budget }: { budget: SharedBudget }) => (
  <Action
    label="Change"
    of={nameOf(budget)}
    title={`Change the limits of ${nameOf(budget)}`}
    submit="Save"
    run={async ({ cost, uses, tokens }) =>
      presign.changeBudget(
        { id: budget.id, cost_limit: costOf(cost), max_uses: usesOf(uses), tokens: tokensOf(tokens) },
        { ifRevision: budget.revision },
      )
    }
  >
    <LimitFields budget={budget} />
  </Action>
);

const DeleteBudget = ({ budget }: { budget: SharedBudget }) => (
  <Action
    label="Delete"
    of={nameOf(budget)}
    title={`Delete ${nameOf(budget)}?`}
    submit="Delete"
    isDanger
    run={() => presign.deleteBudget({ id: budget.id })}
  >
    <p>It no longer limits the calls of its URLs. They keep their own limits.</p>
  </Action>
);
