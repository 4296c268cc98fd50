import { SEARCHED, type SearchAnswer, searchAnswer, searchQuery } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { grants, sessions } from '@presign/schema/tables';
import type { Database, TextRow } from '@presign/service/database';
import { type SQL, sql } from 'drizzle-orm';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';

const LONGEST_MS = 8_000;

/** `GET /v1/search`: users and sessions by a part of their names. */
export const search = route(
  {
    method: 'get',
    path: '/v1/search',
    summary: 'Find users and sessions by a part of their names',
    description: `Users that have a URL or a call in the ledger. Those whose names begin with the text are found among any number of users, and those that have it elsewhere among the first ${SEARCHED.users} by name. Sessions are found among the newest ${SEARCHED.sessions}.`,
    scope: 'read',
    query: searchQuery,
    answer: searchAnswer,
  },
  ({ db }) => {
    const take = inTurn(LONGEST_MS, 1);
    return async ({ apiKey: { accountId }, query: { contains, kind, limit }, c }) =>
      take(c, async ({ goOn }) => {
        const asked = { db, accountId, text: contains, limit };
        const users = kind === 'session' ? NONE : await findUsers(asked, goOn);
        goOn();
        const named = kind === 'external_user' ? NONE : await findSessions(asked);
        return { data: [...users.data, ...named.data], complete: users.complete && named.complete };
      });
  },
);

const NONE: SearchAnswer = { data: [], complete: true };

type Asked = {
  readonly db: Database;
  readonly accountId: string;
  readonly text: string;
  readonly limit: number;
};

async function findUsers({ db, accountId, text, limit }: Asked, goOn: () => void): Promise<SearchAnswer> {
  const { users: most } = SEARCHED;
  const read = async (from: string, fits: SQL) => {
    const rows = await db.execute<TextRow>(walkUsers(accountId, from, most, fits, limit));
    return {
      names: rows.flatMap(({ name, fits: isFit }) => (isFit === 'true' && name ? [name] : [])),
      isCut: rows.some(({ place }) => Number(place) === most),
    };
  };
  // In the collation of a language, names in another case stand between the names that begin with the text.
  const beginning = await read(text, sql`starts_with(name, ${text}::text)`);
  goOn();
  const all =
    beginning.names.length > limit ? { names: [], isCut: true } : await read('', contains(sql`name`, text));
  const names = [...new Set([...beginning.names, ...all.names])];
  return {
    data: names.slice(0, limit).map((name) => ({ kind: 'external_user', id: name, name })),
    complete: names.length <= limit && !all.isCut,
  };
}

/**
 * Walks from one name to the next by the indexes of ledger and grants, so its work depends on the number of names and not of calls.
 * Postgres walks only as far as rows are fetched. The last name that it may scan is a row, too.
 */
function walkUsers(accountId: string, from: string, most: number, fits: SQL, limit: number): SQL {
  const next = (beyond: SQL) => sql`least(
    (select ${ledger.externalUser} from ${ledger} where ${ledger.accountId} = ${accountId}::uuid
      and ${ledger.externalUser} is not null and ${ledger.externalUser} ${beyond} order by ${ledger.externalUser} limit 1),
    (select ${grants.externalUser} from ${grants} where ${grants.accountId} = ${accountId}::uuid
      and ${grants.externalUser} is not null and ${grants.externalUser} ${beyond} order by ${grants.externalUser} limit 1))`;
  return sql`with recursive walk (name, place) as (
      select ${next(sql`>= ${from}::text`)}, 1
      union all
      select ${next(sql`> walk.name`)}, walk.place + 1 from walk where walk.name is not null and walk.place < ${most}::int)
    select name, place::text as place, fits::text as fits
    from (select name, place, ${fits} as fits from walk where name is not null) as each
    where fits or place = ${most}::int limit ${limit + 1}::int`;
}

async function findSessions({ db, accountId, text, limit }: Asked): Promise<SearchAnswer> {
  const { sessions: most } = SEARCHED;
  const rows =
    await db.execute<TextRow>(sql`select id::text as id, name, place::text as place, fits::text as fits
    from (select id, name, row_number() over () as place, coalesce(${contains(sql`name`, text)}, false) as fits
      from (select ${sessions.id}, ${sessions.name} from ${sessions} where ${sessions.accountId} = ${accountId}::uuid
        order by ${sessions.createdAt} desc limit ${most}::int) as newest) as each
    where fits or place = ${most}::int limit ${limit + 1}::int`);
  const found = rows.filter((row) => row['fits'] === 'true');
  return {
    data: found.slice(0, limit).map(({ id, name }) => ({ kind: 'session', id: id ?? '', name: name ?? '' })),
    complete: found.length <= limit && !rows.some(({ place }) => Number(place) === most),
  };
}

const contains = (name: SQL, text: string): SQL => sql`strpos(lower(${name}), lower(${text}::text)) > 0`;
