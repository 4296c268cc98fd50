import { startEmbeddedRedis } from '@presign/local';
import { connectDatabase, migrateDatabase, readDatabaseSettings } from '@presign/service/database';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOf } from '../chaos/reckon.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../issuer/pgbouncer-process.ts';
import { hasPostgres, makePostgres, type PostgresServer } from '../issuer/postgres-server.ts';
import { type BothProvider, openIn, PROTOCOLS, startBothProvider, turnIn } from './both-protocols.ts';

// Needs a Postgres that may be stopped: made here, where servers are to be used at all.
const wanted = hasPostgres && hasPgBouncer && Boolean(process.env.TEST_DATABASE_URL);

/** A PgBouncer that knows no prepared statements. */
const SETTINGS = readDatabaseSettings({ DATABASE_PREPARE: 'false' });
const KEY = { client_api_key: 'sk-real' };

describe.skipIf(!wanted)('open sockets, while Postgres is down', () => {
  let provider: BothProvider;
  let server: PostgresServer;
  let bouncer: PgBouncer;
  let stack: Stack;
  beforeAll(async () => {
    provider = await startBothProvider();
    server = await makePostgres();
    await migrateDatabase(server.url);
    bouncer = await startPgBouncer(server);
    const redis = await startEmbeddedRedis();
    const { db, close } = connectDatabase(bouncer.url, SETTINGS);
    stack = await startStack({
      providers: provider.file,
      stores: {
        ...{ db, databaseUrl: bouncer.url, redisUrl: redis.url },
        redisTimeouts: { connectMs: 60_000, commandMs: 60_000 },
        close: async () => {
          await redis.close();
          await close();
        },
      },
    });
  });
  afterAll(async () => {
    await stack.close();
    await bouncer.stop();
    await server.remove();
    await provider.close();
  });

  const isAway = () =>
    eventually(async () => {
      const { status } = await stack.presign({ ...PROTOCOLS[0].ask, ...KEY });
      return status === 503;
    });

  const AWAY = [
    ['stopped', () => server.stop(), () => server.start()],
    ['cut off by a PgBouncer that was killed', () => bouncer.kill(), () => bouncer.start()],
  ] as const;

  test.each(PROTOCOLS.flatMap((protocol) => AWAY.map((away) => ({ protocol, why: away[0], away }))))(
    'complete turns of $protocol.name, and each turn has its row afterwards (Postgres is $why)',
    async ({ protocol, away: [, leave, comeBack] }) => {
      const asked = { ...protocol.ask, ...KEY, cost_limit: 50_000_000 };
      // Postgres may just have come back, or may be slow at first.
      const { url, grant_id } = await eventually(() => stack.issue(asked).catch(() => undefined));
      const { last, cost } = protocol;
      const holder = await openIn(protocol, url);
      expect(await turnIn(protocol, holder)).toMatchObject({ type: last });
      provider.hold();
      const underWay = turnIn(protocol, holder);
      await eventually(async () => provider.held() === 1);
      await leave();
      await isAway();
      provider.release();
      expect(await underWay).toMatchObject({ type: last });
      for (let i = 0; i < 3; i++) expect(await turnIn(protocol, holder)).toMatchObject({ type: last });
      // Its grant is in Redis, so it can be opened once more, too.
      const other = await openIn(protocol, url);
      expect(await turnIn(protocol, other)).toMatchObject({ type: last });
      const status = await (await fetch(url.replace(protocol.ask.path, ''))).json();
      expect(status).toMatchObject({ used: 6, held: 0, spent: 6 * cost, open_sockets: 2 });
      await comeBack();
      const rows = await eventually(async () => {
        const found = await rowsOf(stack.db, grant_id).catch(() => []);
        return found.length >= 6 && found;
      });
      const places = rows.map(({ connectionId, turn }) => `${connectionId} ${turn}`).sort();
      const placesOf = ({ headers }: typeof holder, turns: number) =>
        Array.from({ length: turns }, (_, i) => `${headers['x-presign-request-id']} ${i + 1}`);
      expect(places).toEqual([...placesOf(holder, 5), ...placesOf(other, 1)].sort());
      expect(rows.map(({ costMicrousd }) => costMicrousd)).toEqual(rows.map(() => cost));
      for (const { socket } of [holder, other]) socket.close();
    },
  );
});
