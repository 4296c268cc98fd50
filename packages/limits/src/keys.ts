/** The ids by which Redis finds a grant. All its keys lie in one partition, so that Redis Cluster works. */
export type GrantRef = {
  readonly id: string;
  readonly partition: number;
  readonly accountId: string;
  readonly credentialId: string;
  /**
   * The budgets it draws on: first its own or its bundle's, then its virtual key's if that has one, then the present windows of
   * the budgets that it shares with others.
   */
  readonly budgetIds: readonly string[];
};

const inPartition = (partition: number, rest: string) =>
  `presign:{p${String(partition).padStart(2, '0')}}:${rest}`;

/** Redis keys. The hash tag puts all keys of a partition into one slot (Redis Cluster specification). */
export const keys = {
  partition: (partition: number) => inPartition(partition, 'partition'),
  grant: (partition: number, id: string) => inPartition(partition, `grant:${id}`),
  /** Whether the account of a grant is suspended. */
  account: (partition: number, id: string) => inPartition(partition, `account:${id}`),
  credential: (partition: number, id: string) => inPartition(partition, `credential:${id}`),
  budget: (partition: number, id: string) => inPartition(partition, `budget:${id}`),
  hold: (partition: number, id: string) => inPartition(partition, `hold:${id}`),
  leases: (partition: number) => inPartition(partition, 'leases'),
  usage: (partition: number) => inPartition(partition, 'usage'),
  /** A fresh grant, which its issuer leaves so that the first call need not read Postgres. Older versions read `seed:`, and know no servers. */
  seed: (partition: number, id: string) => inPartition(partition, `fresh:${id}`),
  /** The key that a gateway or an issuer writes to learn whether Redis accepts writes. */
  probe: () => inPartition(0, 'probe'),
  survivors: (partition: number) => inPartition(partition, 'survivors'),
  /** How many calls of an account were refused on a day of UTC, by code. */
  refusals: (partition: number, accountId: string, day: string) =>
    inPartition(partition, `refusals:${accountId}:${day}`),
  /** Requests of an API key in this minute. */
  rateLimit: (partition: number, id: string) => inPartition(partition, `rate:${id}`),
  /** Whether the state of an MCP answer has come back, by the charge of the call that it answered. */
  round: (partition: number, chargeId: string) => inPartition(partition, `round:${chargeId}`),
  /** The channel on which a stream of MCP's older transport listens for refusals. */
  listening: (partition: number, channel: string) => inPartition(partition, `listening:${channel}`),
};

/** The most that `UPSTREAM_TIMEOUT_SECONDS` may be. */
const LONGEST_CALL_MS = 86_400_000;

/** How long keys outlive their grant, and how long a tombstone lives at least: the longest call, and an hour to settle it. */
export const KEYS_KEPT_MS = LONGEST_CALL_MS + 3_600_000;
