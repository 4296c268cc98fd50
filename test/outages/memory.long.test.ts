import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ledger } from '@presign/schema/ledger-tables';
import { grants } from '@presign/schema/tables';
import { eq, sum } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { childrenOf, killBackend, postmasterOf } from '../chaos/kill-postgres.ts';
import type { Service } from '../chaos/service.ts';
import type { World } from '../chaos/world.ts';
import { eventually } from '../harness/eventually.ts';
import { serverUser } from '../issuer/postgres-server.ts';
import { canContain, makeContainer } from './container.ts';
import { timeRecovery } from './recovery.ts';
import { canStarve, runs, starve } from './small-memory.ts';
import { takeConnections } from './take-connections.ts';
import { type Code, canHurt, startWitness, USES, until, type Witness } from './witness.ts';

/** The room that a container has left. A process that serves needs more at once. */
const ROOM_BYTES = 1_048_576;

/** How often a liveness probe fails before a process is killed, and how long each one waits. */
const PROBES = 6;
const PROBE_MS = 5_000;

/** As many requests at once as an issuer has connections to Postgres, and more. */
const AT_ONCE = 20;

describe.skipIf(!canHurt || !canStarve)('an issuer and two gateways, in separate processes', () => {
  let witness: Witness;
  let world: World;
  beforeAll(async () => {
    witness = await startWitness();
    world = witness.world;
  });
  afterAll(() => witness.close());
  beforeEach(() => witness.begin());

  const codeOf = (gateway: number) => witness.codeOf(gateway);
  const issueCode = () => witness.issueCode();
  const issueAtOnce = async () => new Set(await Promise.all(Array.from({ length: AT_ONCE }, issueCode)));
  /** Calls on known URLs pass while the issuer refuses. */
  const callsPass = async () => expect([await codeOf(0), await codeOf(1)]).toEqual([200, 200]);

  test('while Postgres gets no more memory, issue no URL and pass calls on known URLs; nothing is lost', async () => {
    expect(await codeOf(1)).toBe(200);
    const postmaster = await postmasterOf(world.postgres.url);
    const feed = starve(() => [postmaster, ...childrenOf(postmaster)], serverUser());
    await eventually(async () => (await issueAtOnce()).has('database_unavailable'));
    await callsPass();
    feed();
    const recovered = timeRecovery('Postgres: memory is full');
    await eventually(async () => {
      const code = await issueCode();
      expect([200, 'database_unavailable']).toContain(code);
      // A server that could not even begin to recover has ended.
      if (!runs(postmaster)) await world.postgres.start();
      return code === 200;
    });
    recovered();
    await witness.nothingLost();
  });

  test('while the system kills a Postgres process for its memory, issue no URL; nothing is lost', async () => {
    expect([await codeOf(1), await issueCode()]).toEqual([200, 200]);
    const asked = Promise.all(Array.from({ length: AT_ONCE }, issueCode));
    await killBackend(world.postgres.url);
    const recovered = timeRecovery('Postgres: a process is killed for its memory');
    await callsPass();
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    for (const code of await asked) expect([200, 'database_unavailable']).toContain(code);
    await witness.nothingLost();
  });

  test('while all connections of Postgres are in use, issue no URL and pass calls on known URLs; nothing is lost', async () => {
    expect([await codeOf(1), await issueCode()]).toEqual([200, 200]);
    const leave = await takeConnections(world.postgres.url);
    expect(await issueCode()).toBe('database_unavailable');
    await callsPass();
    await leave();
    const recovered = timeRecovery('Postgres: all connections are taken');
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    await witness.nothingLost();
  });

  /**
   * A service gets no more memory, and is used until it has ended. A warm one would serve within what it has, so connections
   * that wait take what is left. A process whose allocator fails may freeze instead: it is killed as the chart's liveness probe does.
   */
  const endByMemory = async (service: Service, url: string, use: () => Promise<unknown>) => {
    const child = service.process();
    const exited = once(child, 'exit');
    const waiting = new Set<Socket>();
    starve(() => [child.pid ?? 0]);
    let over = false;
    const lanes = Array.from({ length: 8 }, async () => {
      while (!over) {
        await use();
        for (let i = 0; i < 4; i++) waiting.add(halfACall(url));
      }
    });
    const probe = async () => {
      for (let failed = 0; !over && failed < PROBES; await sleep(1_000)) {
        const alive = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(PROBE_MS) }).catch(
          () => {},
        );
        failed = alive?.ok ? 0 : failed + 1;
      }
      if (!over) child.kill('SIGKILL');
    };
    const probing = probe();
    const [code, signal] = await exited;
    over = true;
    await Promise.all([...lanes, probing]);
    for (const socket of waiting) socket.destroy();
    expect([code, signal]).not.toEqual([0, null]);
  };
  const usesInLedger = async () => {
    const [row] = await world.db
      .select({ uses: sum(ledger.uses) })
      .from(ledger)
      .where(eq(ledger.grantId, witness.grantId()));
    return Number(row?.uses);
  };

  test('lose a gateway that gets no more memory: its calls break off, the other gateway serves, and no limit is exceeded', async () => {
    const [first] = world.gateways;
    const codes = new Set<Code>();
    await endByMemory(first, world.gatewayUrls[0], async () => void codes.add(await codeOf(0)));
    expect(codes).toContain(0);
    await until('uses_exhausted', () => codeOf(1), [200]);
    await first.start();
    const recovered = timeRecovery('Gateway: memory is full, once it runs again');
    expect(await codeOf(0)).toBe('uses_exhausted');
    recovered();
    expect(witness.passed()).toBeLessThanOrEqual(USES);
    await eventually(async () => (await usesInLedger()) === USES);
  });

  test.skipIf(!canContain)(
    "restart a gateway that is killed at its container's memory limit: the other gateway serves, and no limit is exceeded",
    async () => {
      const [first] = world.gateways;
      expect([await codeOf(0), await codeOf(1)]).toEqual([200, 200]);
      const container = makeContainer(ROOM_BYTES);
      container.take(first.process().pid ?? 0);
      let ended: unknown;
      // As `restart: unless-stopped` and Kubernetes do.
      const restarted = once(first.process(), 'exit').then(async (how) => {
        ended = how;
        await first.start();
      });
      const lanes = Array.from({ length: 8 }, async () => {
        while (ended === undefined) {
          expect([200, 'uses_exhausted', 0]).toContain(await codeOf(0));
          expect([200, 'uses_exhausted']).toContain(await codeOf(1));
        }
      });
      await Promise.all([restarted, ...lanes]);
      const recovered = timeRecovery(
        'Gateway: killed at the memory limit of its container, once it runs again',
      );
      expect([200, 'uses_exhausted']).toContain(await codeOf(0));
      recovered();
      expect([ended, container.kills()]).toEqual([[null, 'SIGKILL'], 1]);
      for (const gateway of [0, 1]) await until('uses_exhausted', () => codeOf(gateway), [200]);
      expect(witness.passed()).toBeLessThanOrEqual(USES);
      await eventually(async () => (await usesInLedger()) === USES);
      await container.remove();
    },
  );

  test('lose an issuer that gets no more memory: calls pass, and every answered URL is stored', async () => {
    let answered = 0;
    const before = await world.db.$count(grants);
    await endByMemory(world.issuer, world.issuerUrl, async () => {
      if ((await issueCode()) === 200) answered++;
    });
    await callsPass();
    await world.issuer.start();
    const recovered = timeRecovery('Issuer: memory is full, once it runs again');
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    expect(await world.db.$count(grants)).toBeGreaterThanOrEqual(before + answered + 1);
    await witness.nothingLost();
  });
});

/** A connection whose call never ends. */
function halfACall(url: string): Socket {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname, () => {
    socket.write(`POST /v1/presign HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(4_096)}\r\n`);
  });
  return socket.on('error', () => {});
}
