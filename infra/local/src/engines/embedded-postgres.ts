import { mkdirSync } from 'node:fs';
import { Duplex } from 'node:stream';
import { PGlite } from '@electric-sql/pglite';
import { connectEngine, updateTables } from '@presign/service/database';

/** Each page of its cache stays in memory. The default of 128 MB took 135 MB more, and one process has little to cache. */
const START_PARAMS = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

/**
 * Opens a Postgres in this process on the folder `dir` (made if missing), or in memory without one.
 *
 * A committed transaction survives the process being killed. One process may have the folder open at a time:
 * the engine does not check, so hold the folder's lock. The first start of a folder takes seconds.
 *
 * It has one session. Use `pglite` itself only while `db` has nothing under way.
 * @param begin the dump of another one (`dumpDataDir`), which is faster than an empty start
 */
export async function startEmbeddedPostgres(dir: string | undefined, begin?: Blob) {
  if (dir !== undefined) mkdirSync(dir, { recursive: true, mode: 0o700 });
  const pglite = await PGlite.create({
    startParams: START_PARAMS,
    ...(dir === undefined ? {} : { dataDir: dir }),
    ...(begin === undefined ? {} : { loadDataDir: begin }),
  });
  const { db, close } = connectEngine(() => lineTo(pglite));
  return {
    db,
    pglite,
    /** Brings the tables up to date. */
    migrate: () => updateTables(db),
    close: async () => {
      await close();
      await pglite.close();
    },
  };
}

/** A line to the engine, which answers several messages of the driver at once: a query of Drizzle's is one or two calls. */
function lineTo(pglite: PGlite): Duplex {
  const line = new Duplex({
    read: () => {},
    async write(messages: Buffer, _encoding, done) {
      try {
        // Terminate would end the engine, not only this session.
        if (messages[0] !== TERMINATE) this.push(await pglite.execProtocolRaw(messages));
        done();
      } catch (error) {
        done(error as Error);
      }
    },
    final(done) {
      done();
      this.destroy();
    },
  });
  // The driver ends a line at once only if it is open.
  return Object.assign(line, { readyState: 'open' });
}

const TERMINATE = 'X'.charCodeAt(0);
