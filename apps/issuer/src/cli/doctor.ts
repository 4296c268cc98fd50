import { aligned } from '@presign/client/terminal';
import { readEncryptionKeys, readSigningKey } from '@presign/crypto';
import { BACKLOG_MAX, BACKLOG_ROOM, findRisks, type RedisClient, readMemory } from '@presign/limits';
import { storedLists } from '@presign/providers/keep-list';
import { PRICES } from '@presign/providers/keep-prices';
import { parseVariable, readVariable, VariableError } from '@presign/service';
import { type Database, readDatabaseSettings } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { type Command, CommandError, type Given, type Io, UsageError } from './command.ts';
import { withStores } from './stores.ts';

/** The services that will run, and the calls that they will get. */
type Plan = {
  readonly issuers: number;
  readonly gateways: number;
  /** Postgres connections of each gateway (`DATABASE_POOL_SIZE`). */
  readonly pool: number;
  /** Calls a second, as an average of all hours. */
  readonly calls: number;
};

/** `fix`: something is missing or does not fit. `needs`: a figure to plan with. */
type Finding = readonly [is: 'ok' | 'needs' | 'fix', about: string, says: string];

/** `doctor`: says what a configuration will need, and what is missing. It changes nothing. */
export const DOCTOR: Command = {
  name: 'doctor',
  summary: 'Say what this configuration will need, and what is missing',
  details: [
    'The command changes nothing. Run it with the variables of an issuer. Exit code 1: a line asks for a change.',
  ],
  options: {
    issuers: { value: 'N', about: 'issuers that will run; default 2' },
    gateways: { value: 'N', about: 'gateways that will run; default 2' },
    pool: { value: 'N', about: 'DATABASE_POOL_SIZE of the gateways; default: that of this environment' },
    calls: { value: 'N', about: 'calls a second, as an average of all hours; default 10' },
  },
  run: async (given, io) => {
    const { poolSize } = readDatabaseSettings(io.env);
    const plan = {
      issuers: countOf(given, 'issuers', 2),
      gateways: countOf(given, 'gateways', 2),
      pool: countOf(given, 'pool', poolSize),
      calls: countOf(given, 'calls', 10),
    };
    const ofStores = await withStores(io, async ({ db, redis }) => [
      ...(await postgresFindings(db, io, plan)),
      ...(await redisFindings(redis, plan)),
      ...(await priceFindings(db, io)),
    ]);
    const findings = [...variableFindings(io), ...ofStores, ...diskFindings(io, plan)];
    for (const line of aligned(findings)) io.out(line);
    const fixes = findings.filter(([is]) => is === 'fix').length;
    if (fixes > 0) throw new CommandError(`${fixes} of ${findings.length} lines ask for a change`);
  },
};

function countOf(given: Given, name: keyof Plan, byDefault: number): number {
  const text = given.text(name) ?? String(byDefault);
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new UsageError(`--${name}: expected a whole number from 1`);
  return Number(text);
}

/** Secrets without which an issuer does not start, and the address that each URL begins with. */
function variableFindings({ env }: Io): Finding[] {
  const problemOf = (read: () => unknown) => {
    try {
      read();
      return undefined;
    } catch (error) {
      if (error instanceof VariableError) return error.message;
      throw error;
    }
  };
  const secrets = [
    ['TOKEN_SIGNING_KEY', readSigningKey],
    ['ENCRYPTION_KEYS', readEncryptionKeys],
  ] as const;
  const found = secrets.map(([name, read]): Finding => {
    const problem = problemOf(() => {
      const text = readVariable(env, name);
      parseVariable(name, () => read(text));
    });
    return problem ? ['fix', 'secrets', problem] : ['ok', 'secrets', `${name} can be read`];
  });
  const address = readVariable(env, 'GATEWAY_URL', undefined);
  if (address === undefined)
    found.push(['fix', 'address', 'GATEWAY_URL is missing: URLs begin with http://localhost']);
  return found;
}

/** A migration takes two; one more for a person, and one for this command. */
const SPARE_CONNECTIONS = 4;

async function postgresFindings(db: Database, { env }: Io, plan: Plan): Promise<Finding[]> {
  const { poolSize, statementSeconds } = readDatabaseSettings(env);
  const setting = (name: string) => sql<string>`current_setting(${name})`;
  const [row] = await db
    .select({
      most: setting('max_connections'),
      reserved: setting('superuser_reserved_connections'),
      timeout: sql<string>`(select setting from pg_settings where name = 'statement_timeout')`,
      isReplica: sql<boolean>`pg_is_in_recovery()`,
    })
    .from(sql`(values (1)) as one`);
  const free = Number(row?.most) - Number(row?.reserved);
  const wanted = plan.issuers * poolSize + plan.gateways * plan.pool + SPARE_CONNECTIONS;
  const sum = `${plan.issuers} × ${poolSize} for issuers, ${plan.gateways} × ${plan.pool} for gateways and ${SPARE_CONNECTIONS} to spare are ${wanted} connections; Postgres has ${free}`;
  const found: Finding[] = [[wanted > free ? 'fix' : 'ok', 'connections', sum]];
  if (row?.isReplica) found.push(['fix', 'postgres', 'DATABASE_URL names a replica, which takes no writes']);
  if (Number(row?.timeout) !== statementSeconds * 1_000) {
    const says = `statement_timeout is ${row?.timeout} ms instead of ${statementSeconds * 1_000}: PgBouncer needs connect_query`;
    found.push(['fix', 'postgres', says]);
  }
  return found;
}

/** A settled call that waits for the ledger: docs/guides/scale.md. */
const WAITING_BYTES = 700;
/** Redis ends running calls in the memory above `maxmemory`. */
const MOST_OF_SYSTEM = 0.9;
const FAR_MS = 5_000;

async function redisFindings(redis: RedisClient, { calls }: Plan): Promise<Finding[]> {
  const asked = Date.now();
  const [[seconds], risks, memories] = await Promise.all([redis.time(), findRisks(redis), readMemory(redis)]);
  const found: Finding[] = risks.map((risk) => ['fix', 'redis', risk]);
  const offMs = Math.abs(asked - Number(seconds) * 1_000);
  if (offMs > FAR_MS)
    found.push(['fix', 'clock', `this clock and that of Redis differ by ${Math.round(offMs / 1_000)} s`]);
  for (const { used, most, system } of memories) {
    const waiting = most === 0 ? BACKLOG_MAX : (BACKLOG_ROOM * most - used) / WAITING_BYTES;
    const kept = Math.floor(Math.max(BACKLOG_MAX, waiting));
    const lasts = `while the ledger stops, one account can make ${kept} calls: ${span(kept / calls)} at ${calls} a second`;
    if (most === 0) found.push(['fix', 'memory', `Redis has no maxmemory: it may take all memory; ${lasts}`]);
    else found.push(['needs', 'memory', lasts]);
    if (system > 0 && most > MOST_OF_SYSTEM * system)
      found.push(['fix', 'memory', `maxmemory is ${size(most)} of ${size(system)}: leave a tenth`]);
  }
  return found;
}

/** Prices change within weeks. */
const OLD_DAYS = 30;

async function priceFindings(db: Database, { env }: Io): Promise<Finding[]> {
  const source = readVariable(env, 'PRICES_URL', undefined) ?? readVariable(env, 'PRICES_FILE', undefined);
  if (source === undefined)
    return [['fix', 'prices', 'neither PRICES_URL nor PRICES_FILE is set: new models have no price']];
  const lists = await storedLists(PRICES, db, Date.now());
  if (lists.length === 0) return [['fix', 'prices', 'no service has read the price list yet']];
  return lists.map(({ good, waiting }): Finding => {
    const days = Math.floor((Date.now() - Date.parse(good.date)) / 86_400_000);
    const says = `the price list is ${days} days old${waiting ? ', and another waits: see prices status' : ''}`;
    return [days > OLD_DAYS || waiting ? 'fix' : 'ok', 'prices', says];
  });
}

/** docs/guides/operate/sizing.md. */
const [LEDGER_BYTES, LOG_BYTES] = [650, 600];

function diskFindings({ env }: Io, { calls, gateways }: Plan): Finding[] {
  const days = readVariable(env, 'LEDGER_KEPT_DAYS', 400);
  const aDay = calls * 86_400;
  const ledger =
    days === 0
      ? `the ledger grows by ${size(aDay * LEDGER_BYTES)} a day for good (LEDGER_KEPT_DAYS 0)`
      : `the ledger takes ${size(aDay * LEDGER_BYTES * days)} in ${days} days (LEDGER_KEPT_DAYS)`;
  const log = `the logs of ${gateways} gateways grow by ${size(aDay * LOG_BYTES)} a day`;
  const isQuiet = ['warn', 'error', 'fatal'].includes(readVariable(env, 'LOG_LEVEL', 'info'));
  return [
    ['needs', 'disk', `${ledger} at ${calls} calls a second`],
    ['needs', 'log', isQuiet ? 'the logs have no line of a call that passed (LOG_LEVEL)' : log],
  ];
}

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB', 'PB'] as const;
const size = (bytes: number) => {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(bytes) / 3)));
  return `${Number((bytes / 1_000 ** power).toPrecision(3))} ${UNITS[power]}`;
};

const span = (seconds: number) =>
  seconds < 600
    ? `${Math.floor(seconds)} s`
    : seconds < 36_000
      ? `${Math.floor(seconds / 60)} min`
      : `${Math.floor(seconds / 3_600)} h`;
