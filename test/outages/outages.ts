import postgres from 'postgres';
import { freezePostgres } from '../chaos/kill-postgres.ts';
import { makeRedis } from '../chaos/redis-server.ts';
import { hasPgBouncer, startPgBouncer } from '../issuer/pgbouncer-process.ts';
import { type AlertWorld, type Manner, within } from './alert-world.ts';
import { takeConnections } from './take-connections.ts';
import type { Code } from './witness.ts';

/** An outage, the caller that sees it, and the alerts that must say so. */
export type Outage = {
  readonly name: string;
  readonly begin?: () => Promise<unknown> | unknown;
  readonly end?: () => Promise<unknown> | unknown;
  readonly ask: () => Promise<Code>;
  /** The service whose `/readyz` may say it. */
  readonly readyz?: string;
  /** Alerts that must fire, with a label of theirs, and within how many seconds, if not three minutes. */
  readonly alerts: readonly (readonly [alert: string, label: string, seconds?: number])[];
};

/** Outages at the same time, of parts that have nothing to do with each other. */
export type Outages = {
  readonly name: string;
  readonly outages: readonly Outage[];
  /** How long, in seconds of the rules. */
  readonly seconds: number;
  /** Made before the recording begins. Returns what undoes it. */
  readonly before?: () => Promise<() => Promise<unknown>>;
  /** Runs without TEST_OUTAGES=all, too. */
  readonly often?: boolean;
};

const CRITICAL = 'critical';
/** Long enough for a rule that waits a minute on a rate of two. */
const SECONDS = 120;

export const outagesOf = async (at: AlertWorld): Promise<readonly Outages[]> => {
  const one = (outage: Outage, more: Partial<Outages> = {}): Outages => ({
    ...{ name: outage.name, outages: [outage], seconds: SECONDS },
    ...more,
  });
  return [
    { name: 'providers', outages: await ofProviders(at), seconds: 150, often: true },
    ...(await ofRedis(at)).map((each) => one(each, { often: each.name === 'Redis is killed' })),
    ...ofPostgres(at).map((each) => one(each, { often: each.name === 'Postgres is stopped' })),
    ...(await throughPgBouncer(at)).map(([each, before]) => one(each, { before })),
    ...(await ofServices(at)).map((each) => one(each, { often: each.name === 'a gateway is killed' })),
    { name: 'slow parts', outages: await slowParts(at), seconds: 900 },
  ];
};

const PROVIDERS = [
  ['a provider answers 500', 'fails', 'PresignProviderFails'],
  ['a provider answers 429 to all', 'limits', 'PresignProviderFails'],
  ['a provider has revoked the key', 'revoked', 'PresignProviderFails'],
  ['a provider refuses connections', 'refuses', 'PresignProviderFails'],
  ['the name of a provider has no address', 'nameless', 'PresignProviderFails'],
  ['a provider hangs', 'hangs', 'PresignProviderHangs'],
] as const;
/** Calls that wait for a provider that hangs. */
const HANGING = 25;

async function ofProviders({ issue, ask, behave }: AlertWorld): Promise<readonly Outage[]> {
  const outages: Outage[] = [];
  for (const [name, provider, alert] of PROVIDERS) {
    const url = await issue(provider);
    const isAway = provider === 'refuses' || provider === 'nameless';
    if (!isAway) for (const gateway of [0, 1]) await ask(gateway, url);
    let turn = 0;
    const one = () => ask(turn++, url);
    const begin = () => {
      if (!isAway) behave(provider, provider as Manner);
      // Half of them over each gateway.
      if (provider === 'hangs') for (let i = 0; i < HANGING; i++) void one();
    };
    const end = () => (isAway ? undefined : behave(provider, 'well'));
    const seen = provider === 'hangs' ? () => within(one(), 1_000) : one;
    outages.push({ name, begin, end, ask: seen, alerts: [[alert, provider]] });
  }
  return outages;
}

async function ofRedis({ world, issue, ask }: AlertWorld): Promise<readonly Outage[]> {
  const url = await issue('openai');
  const readyz = world.gatewayUrls[0];
  const base = { ask: () => within(ask(0, url), 8_000), readyz };
  const refused = ['PresignCallsRefusedByOutage', CRITICAL] as const;
  const problem = ['PresignStoreProblem', 'redis'] as const;
  const unready = ['PresignNotReady', 'gateway'] as const;
  const unknown = ['PresignLedgerUnknown', CRITICAL] as const;
  const { master } = world;
  return [
    {
      ...{ name: 'Redis is killed', ...base, alerts: [refused, problem, unknown] },
      ...{ begin: () => master().kill(), end: () => master().start() },
    },
    {
      ...{ name: 'Redis is frozen', ...base, alerts: [refused, unready, unknown] },
      ...{ begin: () => master().freeze(), end: () => master().thaw() },
    },
    {
      ...{ name: 'the way to Redis is cut', ...base, alerts: [refused, unready, unknown] },
      ...{ begin: () => world.redisWay.silence(), end: () => world.redisWay.lead(master().port) },
    },
    {
      ...{ name: 'the memory of Redis is full', ...base, alerts: [refused, problem] },
      begin: () => master().command('CONFIG', 'SET', 'maxmemory', '1'),
      end: () => master().command('CONFIG', 'SET', 'maxmemory', '0'),
    },
    {
      ...{ name: 'Redis is replaced by an empty one', ...base },
      alerts: [['PresignEpochChanged', 'warning']],
      begin: async () => {
        await master().kill();
        const next = await makeRedis('--appendfsync', 'always');
        world.adopt(next.remove);
        world.follow(next);
      },
    },
  ];
}

function ofPostgres({ world, issueCode, disk }: AlertWorld): readonly Outage[] {
  const base = { ask: () => within(issueCode(), 12_000), readyz: world.issuerUrl };
  const fails = ['PresignIssuerFails', CRITICAL] as const;
  const problem = ['PresignStoreProblem', 'postgres'] as const;
  const unready = ['PresignNotReady', 'issuer'] as const;
  const { postgres: server } = world;
  let undo: () => Promise<unknown> | unknown = () => {};
  const end = () => undo();
  return [
    {
      ...{ name: 'Postgres is stopped', ...base, alerts: [fails, problem] },
      ...{ begin: () => server.stop(), end: () => server.start() },
    },
    {
      ...{ name: 'Postgres is frozen', ...base, alerts: [fails, unready], end },
      begin: async () => {
        undo = await freezePostgres(server.url);
      },
    },
    {
      ...{ name: 'Postgres takes no writes', ...base, alerts: [fails, problem] },
      ...{ begin: () => readOnly(server.url, true), end: () => readOnly(server.url, false) },
    },
    {
      ...{ name: 'all connections of Postgres are taken', ...base, alerts: [fails, problem], end },
      begin: async () => {
        // Services that connect again at once would take each one that is freed.
        world.postgresWay.lead(1);
        undo = await takeConnections(server.url);
        world.postgresWay.lead(Number(new URL(server.url).port));
      },
    },
    ...(disk
      ? [
          {
            ...{ name: 'the disk of Postgres is full', ...base, alerts: [fails, problem] },
            begin: () => disk.fill(),
            end: async () => {
              disk.free();
              await server.stop();
              await server.start();
            },
          },
        ]
      : []),
  ];
}

async function readOnly(url: string, isOn: boolean): Promise<void> {
  const client = postgres(url, { max: 1, connection: { default_transaction_read_only: false } });
  await client.unsafe(`alter system set default_transaction_read_only = ${isOn ? 'on' : 'off'}`);
  await client`select pg_reload_conf()`;
  await client.end();
}

/** PgBouncer comes between the services and Postgres before the recording begins. */
async function throughPgBouncer({ world, issueCode }: AlertWorld) {
  if (!hasPgBouncer) return [];
  const bouncer = await startPgBouncer(world.postgres);
  world.adopt(bouncer.stop);
  const before = async () => {
    world.postgresWay.lead(bouncer.port);
    return async () => world.postgresWay.lead(Number(new URL(world.postgres.url).port));
  };
  const outage: Outage = {
    ...{ name: 'PgBouncer is killed', ask: () => within(issueCode(), 12_000), readyz: world.issuerUrl },
    ...{ begin: bouncer.kill, end: bouncer.start },
    alerts: [
      ['PresignIssuerFails', CRITICAL],
      ['PresignStoreProblem', 'postgres'],
    ],
  };
  return [[outage, before]] as const;
}

async function ofServices({ world, issue, ask, issueCode }: AlertWorld): Promise<readonly Outage[]> {
  const url = await issue('openai');
  const { issuer, gateways } = world;
  const toGateway = { ask: () => within(ask(1, url), 2_000), readyz: world.gatewayUrls[1] };
  const toIssuer = { ask: () => within(issueCode(), 2_000), readyz: world.issuerUrl };
  const down = (name: string) => [['PresignDown', name]] as const;
  const signal = (service: typeof issuer, name: NodeJS.Signals) => () => void service.process().kill(name);
  return [
    {
      ...{ name: 'a gateway is killed', ...toGateway, alerts: down('gateway-2') },
      ...{ begin: gateways[1].kill, end: gateways[1].start },
    },
    {
      ...{ name: 'a gateway is frozen', ...toGateway, alerts: down('gateway-2') },
      ...{ begin: signal(gateways[1], 'SIGSTOP'), end: signal(gateways[1], 'SIGCONT') },
    },
    {
      ...{ name: 'the issuer is killed', ...toIssuer, begin: issuer.kill, end: issuer.start },
      alerts: [...down('issuer'), ['PresignLedgerUnknown', CRITICAL]],
    },
    {
      ...{ name: 'the issuer is frozen', ...toIssuer },
      ...{ begin: signal(issuer, 'SIGSTOP'), end: signal(issuer, 'SIGCONT') },
      alerts: [...down('issuer'), ['PresignLedgerUnknown', CRITICAL]],
    },
  ];
}

/** A rule that warns of slowness waits for minutes. */
const MINUTES_OF_WARNINGS = 900;

async function slowParts({ issue, ask, behave, hook, world }: AlertWorld): Promise<readonly Outage[]> {
  const slow = await issue('slow');
  const limited = await issue('openai', { calls_per_minute: 1 });
  let asked = 0;
  return [
    {
      ...{ name: 'a provider is slow', ask: () => within(ask(asked++, slow), 1_000) },
      ...{ begin: () => behave('slow', 'slow'), end: () => behave('slow', 'well') },
      alerts: [['PresignProviderSlow', 'slow', MINUTES_OF_WARNINGS]],
    },
    {
      name: 'agents repeat calls that a rate limit refuses',
      ask: async () => {
        const codes = await Promise.all(Array.from({ length: 10 }, () => ask(0, limited)));
        return codes.at(-1) ?? 0;
      },
      alerts: [['PresignLimitsReached', 'warning', MINUTES_OF_WARNINGS]],
    },
    {
      ...{ name: 'the endpoint of webhooks fails', ask: async () => 200 },
      ...{ begin: () => hook(500), end: () => hook(204), readyz: world.issuerUrl },
      alerts: [['PresignWebhooksFail', 'warning', MINUTES_OF_WARNINGS]],
    },
  ];
}
