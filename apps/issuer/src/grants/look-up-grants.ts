import { type GrantsQuery, writeCursor } from '@presign/schema';
import { statusInSql, timeInSql } from '@presign/schema/grant-status';
import { apiKeys, budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Database, TextRow } from '@presign/service/database';
import { and, eq, gt, isNull, type SQL, sql } from 'drizzle-orm';
import { after, filtersOf, micros, newestFirst } from '../answers/page.ts';

/** Grants are ordered by their time of issue. */
export const PLACE = { createdAt: grants.issuedAt, id: grants.id };

/** The most grants that a filter may find by an index to be sorted. */
const FEW = 10_000;
/** Beyond that, a page looks at no more than so many grants, in the order of the list. */
const LOOKED_AT = 2_000;
/** The API keys whose grants a page looks at. A page has at most 100 entries, and each may be of another key. */
const KEYS = 101;
/** The most grants that a page reads of all these keys together. */
const READ = 20_000;

type Asked = { readonly accountId: string; readonly query: GrantsQuery; readonly nowMs: number };

/** The ids of a page in its order, and its `next_cursor`. */
export type LookedUp = { readonly ids: readonly string[]; readonly nextCursor: string | null };

/**
 * Finds a page of an account's grants. The work depends on the size of the page and on the number of API keys, not on the number of
 * grants. A page that would need more work ends early.
 * @param goOn throws once the caller has left
 */
export async function lookUpGrants(db: Database, asked: Asked, goOn: () => void): Promise<LookedUp> {
  const { limit } = asked.query;
  const few = await findFew(db, asked, goOn);
  goOn();
  const rows = await db.execute<TextRow>(few ? sortFew(asked, few) : walkKeys(asked));
  const found = rows.filter(({ fits }) => fits === 'true').map(placeOf);
  const page = found.slice(0, limit);
  const last = rows.at(-1);
  const isMore = last !== undefined && last['is_end'] === 'false';
  const next = found.length > limit ? page.at(-1) : isMore ? placeOf(last) : undefined;
  return { ids: page.map(({ id }) => id), nextCursor: next ? writeCursor(next) : null };
}

const placeOf = ({ id, micros: at }: TextRow) => ({ id: id ?? '', micros: at ?? '' });

/** The first condition of a query that has an index and that few grants fit. Undefined: none. */
async function findFew(db: Database, asked: Asked, goOn: () => void): Promise<SQL | undefined> {
  for (const condition of indexed(asked)) {
    goOn();
    const some = db
      .select({ id: grants.id })
      .from(grants)
      .where(condition)
      .limit(FEW + 1);
    if ((await db.$count(some.as('some'))) <= FEW) return condition;
  }
  return undefined;
}

/** The conditions of a query that have an index. The API key is not among them: its index has grants in the order of the list. */
function indexed({ accountId, query, nowMs }: Asked): (SQL | undefined)[] {
  const { session_id: session, external_session: external, external_user: user, status } = query;
  const own = eq(grants.accountId, accountId);
  // Postgres reads this first. Otherwise it could read all grants of another account's session, and keep no grant.
  const ownSession = (id: string) => sql`(select ${sessions.id} from ${sessions}
    where ${and(eq(sessions.id, id), eq(sessions.accountId, accountId))})`;
  const isLive = and(isNull(grants.revokedAt), gt(grants.expiresAt, timeInSql(nowMs)));
  return [
    ...(session === undefined ? [] : [and(own, eq(grants.sessionId, ownSession(session)))]),
    ...(external === undefined ? [] : [and(own, eq(grants.externalSession, external))]),
    ...(user === undefined ? [] : [and(own, eq(grants.externalUser, user))]),
    ...(status === 'active' || status === 'exhausted' ? [and(own, isLive)] : []),
  ];
}

const FILTERS = [
  ['session_id', grants.sessionId],
  ['external_session', grants.externalSession],
  ['external_user', grants.externalUser],
  ['api_key', grants.apiKeyId],
] as const;

const NEXT = sql`issued_at desc, id_text desc`;
const COLUMNS = sql`${grants.id}, ${grants.id}::text as id_text, ${grants.issuedAt}, ${micros(grants.issuedAt)} as micros`;
const inOrder = sql.join(newestFirst(PLACE), sql`, `);

function sortFew(asked: Asked, few: SQL): SQL {
  const { query } = asked;
  const which = and(few, ...filtersOf(query, grants.issuedAt, FILTERS), after(query.cursor, PLACE));
  return sql`with looked_at as materialized (select ${COLUMNS} from ${grants} where ${which})
    ${selectFitting(asked, hasStatus(asked), sql`true`)}`;
}

/**
 * Looks at the newest grants of the keys that issued last. The index of keys has grants in the order of the list. If there are more keys,
 * the walk ends at the newest grant of the first key that it leaves out.
 */
function walkKeys(asked: Asked): SQL {
  const { accountId, query } = asked;
  const { api_key: key, limit } = query;
  const others = filtersOf({ ...query, api_key: undefined }, grants.issuedAt, FILTERS);
  const fits = and(...others, hasStatus(asked));
  const ofKeys = and(eq(apiKeys.accountId, accountId), key === undefined ? undefined : eq(apiKeys.id, key));
  const newestOf = (id: SQL) => sql`from ${grants}
    where ${and(eq(grants.apiKeyId, id), eq(grants.accountId, accountId), after(query.cursor, PLACE))} order by ${inOrder}`;
  const most = fits
    ? sql`greatest(${limit + 1}::int, least(${LOOKED_AT}::int, ${READ}::int / greatest((select count(*) from newest), 1)))`
    : sql`${limit + 1}::int`;
  return sql`with newest as materialized (
      select keys.id as key, each.*, row_number() over (order by ${NEXT_OF_EACH}) as place
      from (select ${apiKeys.id} from ${apiKeys} where ${ofKeys}) as keys
      cross join lateral (select ${COLUMNS} ${newestOf(sql`keys.id`)} limit 1) as each
      order by place limit ${KEYS + 1}::int),
    looked_at as materialized (
      select each.* from newest cross join lateral (select ${COLUMNS} ${newestOf(sql`newest.key`)} limit ${most}) as each
      where newest.place <= ${KEYS}::int and coalesce(
        (each.issued_at, each.id_text) > (select issued_at, id_text from newest where place > ${KEYS}::int), true)
      order by ${NEXT_OF_EACH} limit ${most})
    ${selectFitting(asked, fits, sql`(select count(*) from looked_at) < ${most} and (select count(*) from newest) <= ${KEYS}::int`)}`;
}

const NEXT_OF_EACH = sql`each.issued_at desc, each.id_text desc`;

const hasStatus = ({ query: { status }, nowMs }: Asked): SQL | undefined =>
  status && sql`${statusInSql(timeInSql(nowMs))} = ${status}`;

/**
 * Selects the grants of `looked_at` that fit, and the last one of all. With `offset 0`, Postgres looks up one grant after another until
 * the page is full.
 */
function selectFitting({ query }: Asked, fits: SQL | undefined, isEnd: SQL): SQL {
  const isFit =
    fits &&
    sql`exists (select from ${grants} join ${budgets} on ${budgets.id} = ${grants.budgetId}
      join ${sessions} on ${sessions.id} = ${grants.sessionId}
      left join ${virtualKeys} on ${virtualKeys.id} = ${grants.virtualKeyId}
      where ${grants.id} = ordered.id and ${fits} offset 0)`;
  return sql`, ordered as (select *, row_number() over (order by ${NEXT}) as place, count(*) over () as total from looked_at)
    select id_text as id, micros, fit.fits::text as fits, (${isEnd})::text as is_end
    from ordered cross join lateral (select ${isFit ?? sql`true`} as fits offset 0) as fit
    where fit.fits or place = total order by ${NEXT} limit ${query.limit + 1}::int`;
}
