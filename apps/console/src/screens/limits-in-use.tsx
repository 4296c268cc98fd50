import type { Session, SharedBudget, VirtualKey } from '@presign/client';
import { useBudgets, useRecentSessions, useVirtualKeyFigures } from '../api/queries.ts';
import { MOST_READ } from '../api/read-all.ts';
import { count, money, short } from '../data/format/format.ts';
import { figuresOf, nameOf, shareOf, shareUsed } from '../data/shared-budget.ts';
import { Answer } from '../parts/page/answer.tsx';
import { Facts, Fullness, NotLive } from '../parts/page/facts.tsx';
import { hrefOf } from '../parts/page/place.ts';
import { Table } from '../parts/tables/table.tsx';

/** A limit with at least this share used is near its end. */
const NEAR = 0.8;
const MOST_ROWS = 20;

type InUse = {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly href: string;
  /** Null: Redis does not answer. */
  readonly held: number | null;
  readonly spent: number;
  readonly share: number;
};

/** The limits that hold money or are near their end: of budgets, of virtual keys, and of recently called URLs. */
export function LimitsInUse() {
  const [budgets, keys, sessions] = [useBudgets(), useVirtualKeyFigures(), useRecentSessions()];
  return (
    <Answer of={budgets}>
      {(ofBudgets) => (
        <Answer of={keys}>
          {(ofKeys) => (
            <Answer of={sessions}>
              {(recent) => (
                <Found
                  all={[
                    ...ofBudgets.rows.flatMap(ofBudget),
                    ...ofKeys.rows.flatMap(ofVirtualKey),
                    ...recent.flatMap(ofSession),
                  ]}
                  isCut={ofBudgets.isCut || ofKeys.isCut}
                />
              )}
            </Answer>
          )}
        </Answer>
      )}
    </Answer>
  );
}

/** One call can be held under several limits, so holds are not added up. */
function Found({ all, isCut }: { all: readonly InUse[]; isCut: boolean }) {
  const isLive = all.every(({ held }) => held !== null);
  const near = all.filter(({ share }) => share >= NEAR);
  const rows = all
    .filter(({ share, held }) => share >= NEAR || (held ?? 0) > 0)
    .sort((a, b) => b.share - a.share || (b.held ?? 0) - (a.held ?? 0));
  return (
    <>
      <Facts
        of={[
          ['Holding money', isLive ? count(all.filter(({ held }) => (held ?? 0) > 0).length) : '–'],
          ['Near a limit', count(near.length)],
        ]}
      />
      {!isLive && <NotLive />}
      <Table
        caption="Limits that hold money or are near their end"
        rows={rows.slice(0, MOST_ROWS)}
        keyOf={({ id }) => id}
        empty="No limit holds money or is 80 % used."
        isCut={isCut}
        columns={[
          { head: 'Limit', cell: (each) => <a href={each.href}>{each.name}</a> },
          { head: 'Of', cell: ({ kind }) => kind },
          { head: 'Held', figure: true, cell: ({ held }) => money(held) },
          { head: 'Spent', figure: true, cell: ({ spent }) => money(spent) },
          { head: 'Full', cell: ({ name, share }) => <Fullness of={name} used={share} most={1} /> },
        ]}
      />
      <p class="soft">
        {isCut ? `The newest ${count(MOST_READ)} budgets and virtual keys` : 'All budgets and virtual keys'},
        and URLs of the sessions with the newest calls.
      </p>
    </>
  );
}

function ofBudget(budget: SharedBudget): InUse[] {
  if (budget.deleted_at !== null || !budget.current) return [];
  const { held, spent } = figuresOf(budget);
  const names = { id: budget.id, kind: 'budget', name: nameOf(budget), href: hrefOf('limits', budget.id) };
  return [{ ...names, held, spent, share: shareOf(budget) }];
}

function ofVirtualKey({ id, name, budget, revoked_at: end }: VirtualKey): InUse[] {
  if (!budget || end !== null) return [];
  const figures = { held: null, ...(budget.live ?? budget.settled) };
  const share = shareUsed(budget, figures);
  return [{ id, kind: 'virtual key', name, href: hrefOf('keys', id), ...figures, share }];
}

/**
 * Ended URLs are excluded. Exhausted URLs are included, because an operator can raise their limits. The servers of a bundle repeat the
 * figures of the bundle, so they are omitted.
 */
const ofSession = ({ grants }: Session): InUse[] =>
  grants
    .filter(
      ({ status, bundle_id: bundle }) => bundle === null && (status === 'active' || status === 'exhausted'),
    )
    .map((grant) => {
      const figures = { held: null, ...(grant.live ?? grant.settled) };
      const name =
        grant.external_user === null ? short(grant.id) : `${short(grant.id)} of ${grant.external_user}`;
      const at = hrefOf('urls/url', grant.id);
      return { id: grant.id, kind: 'URL', name, href: at, ...figures, share: shareUsed(grant, figures) };
    });
