import type { Readiness } from '@presign/service';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { canMount, makeSmallDisk } from '../outages/small-disk.ts';
import { least, refused, send } from './ask.ts';
import { hasPostgres, makePostgres } from './postgres-server.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

/** A stack on a Postgres of its own, perhaps with its tables on a small disk. */
async function startOn(parent?: string) {
  const server = await makePostgres(parent === undefined ? {} : { parent, logElsewhere: true });
  undo.push(() => server.remove());
  const former = process.env.TEST_DATABASE_URL;
  process.env.TEST_DATABASE_URL = server.url;
  const stack = await startStack({ providers: {} });
  if (former === undefined) delete process.env.TEST_DATABASE_URL;
  else process.env.TEST_DATABASE_URL = former;
  undo.push(() => stack.close().catch(() => {}));
  return { server, stack };
}

/** Waits until the issuer is ready, or unready, and returns the problems of Postgres. */
const becomes = (stack: Stack, status: Readiness['status']) =>
  eventually(async () => {
    const answer = await fetch(`${stack.issuerUrl}/readyz`);
    const found = (await answer.json()) as Readiness;
    expect(answer.status).toBe(found.status === 'ready' ? 200 : 503);
    if (found.status !== status) return undefined;
    return {
      problems: found.problems.filter(({ store }) => store === 'postgres').map(({ problem }) => problem),
    };
  });

const READY = { problems: [] };

describe('an issuer is ready', () => {
  test('on any engine while it can issue, however many probes arrive', async () => {
    const stack = await startStack({ providers: {} });
    undo.push(() => stack.close());
    expect(await becomes(stack, 'ready')).toEqual(READY);
    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${stack.issuerUrl}/readyz`)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  });

  test.skipIf(!hasPostgres)('unless Postgres is a demoted primary', async () => {
    const { server, stack } = await startOn();
    expect(await becomes(stack, 'ready')).toEqual(READY);
    await server.stop();
    server.demote();
    await server.start();
    expect(await becomes(stack, 'unready')).toEqual({ problems: ['is read-only'] });
    refused(await send(stack, { body: least }), 'database_unavailable');
  });

  test.skipIf(!hasPostgres || !canMount)('unless the disk of Postgres is full', async () => {
    const disk = makeSmallDisk(160);
    undo.push(() => disk.remove());
    const { stack } = await startOn(disk.folder);
    undo.push(() => disk.free());
    expect(await becomes(stack, 'ready')).toEqual(READY);
    disk.fill();
    expect(await becomes(stack, 'unready')).toEqual({ problems: ['has no room on its disk'] });
    disk.free();
    expect(await becomes(stack, 'ready')).toEqual(READY);
    expect((await send(stack, { body: least })).status).toBe(200);
  });
});
