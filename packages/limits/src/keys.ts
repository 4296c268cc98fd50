/** The ids by which Redis finds a grant. All its keys are in one partition, as Redis Cluster requires. */
export type GrantRef = {
  readonly id: string;
  readonly partition: number;
  readonly accountId: string;
  readonly credentialId: string;
  /** Its budgets in order: its own or its bundle's, the budget of its virtual key if any, and the present windows of its shared budgets. */
  readonly budgetIds: readonly string[];
};

const inPartition = (partition: number, rest: string) =>
  `presign:{p${String(partition).padStart(2, '0')}}:${rest}`;

/**
 * Redis keys. The hash tag puts all keys of a partition into one slot (Redis Cluster specification). The comment of each is its row in
 * the README, and has to name the fields that the scripts name.
 */
export const keys = {
  /**
   * `epoch`; `state`: closed or open; `drained`: the last trimmed stream id; `run`: the server's run id when the epoch began
   * @lasts for good
   */
  partition: (partition: number) => inPartition(partition, 'partition'),
  /**
   * `epoch`; `doc`: JSON for gateways; `revision`: of its own budget; `ends`: Unix ms, if it may end before its token does; `revoked`: 1 on a
   * tombstone
   * @lasts expiry + 25 hours, a tombstone at least 25 hours from now
   */
  grant: (partition: number, id: string) => inPartition(partition, `grant:${id}`),
  /**
   * `version`: of the last change; `suspended`: 1 or 0
   * @lasts while it is suspended, then an hour
   */
  account: (partition: number, id: string) => inPartition(partition, `account:${id}`),
  /**
   * `epoch`; `version`; `sealed`: the key; `revoked`: 1 on a tombstone, which has no seal
   * @lasts longest of its grants + 25 hours; a new version at least 1 hour, a tombstone 25 hours
   */
  credential: (partition: number, id: string) => inPartition(partition, `credential:${id}`),
  /**
   * `epoch`; `from`: the stream id that its first figures contain; `revision`: of the limits, alone where a change came before `load`; each
   * limit by its `field` in [the table](../schema/src/limit-kinds.ts), absent where there is none, or −1 for `max_uses` and `cost_limit`;
   * `used`, `settled`, `held`; `returned`: see below; `last_call`: how it failed, as JSON; `active`: calls under way that have a place;
   * the level of each rate limit and the time of it: `level` and `at` for calls by the minute, `token_level` in
   * 60,000ths and `token_at` for tokens, `<field>_level` and `<field>_at` for the others; of a window of a shared budget `window`: its beginning and
   * end in Unix ms, `visible`: 1 where holders see it, `token_limit`, `tokens`: used, and `tokens_held`; `late:<epoch>:<stream id>`: uses, cost and tokens of an entry that came while the
   * budget was not loaded
   * @lasts with its grant; a window's end + 25 hours; or for good, if grants share it
   */
  budget: (partition: number, id: string) => inPartition(partition, `budget:${id}`),
  /**
   * A running call: `epoch`, `uses`, `amount` (empty: no bound), `tokens`: its output bound, `grant`, `budgets`, `record`, `places`;
   * `token_worst` and `token_since`: what it took of a rate of tokens, and when; `token_hold`: tokens held in windows. After the settle of a
   * hold never seen: `done` alone. A charge: `uses`, `amount`, and `budgets` if one has a window, or `done` in their place, once given back
   * or forestalled; `epoch`, `places`, `budgets` while its calls are under way
   * @lasts until settled; `done` a day; a charge 5 minutes
   */
  hold: (partition: number, id: string) => inPartition(partition, `hold:${id}`),
  /**
   * hold id, scored by the end of its lease in Unix ms, by the clock of Redis
   * @lasts until settled
   */
  leases: (partition: number) => inPartition(partition, 'leases'),
  /**
   * settled calls that are not in the ledger yet: `hold`, `grant`, `budgets`, `uses`, `cost` (empty: unknown) and `tokens`, each below 0 where it
   * is given back, `outcome`: settled, expired or refunded, `record`; ends of charged calls: `outcome` ended, and a list as `record`
   * @lasts until trimmed
   */
  usage: (partition: number) => inPartition(partition, 'usage'),
  /**
   * the seed of a fresh grant as JSON, which its issuer leaves so that the first call need not read Postgres: epoch, account, API key, user,
   * `config`, MCP server, end, sealed credential, limits of its budget; see `seeder`
   * @lasts a minute, or until `load` takes it
   */
  seed: (partition: number, id: string) => inPartition(partition, `fresh:${id}`),
  /**
   * written to learn whether Redis accepts writes; in one partition
   * @lasts a minute
   */
  probe: () => inPartition(0, 'probe'),
  /**
   * hold id → uses, amount, budgets, places and tokens of a hold of an older epoch, which outlived a loss of data
   * @lasts until settled
   */
  survivors: (partition: number) => inPartition(partition, 'survivors'),
  /**
   * refused calls that are not in Postgres yet, at most 1,000 entries; `entry`: calls of one grant and code as JSON
   * @lasts until an issuer has written them
   */
  refused: (partition: number) => inPartition(partition, 'refused'),
  /**
   * `level`: requests that an API key, or URLs that an account, has left at the time `at`
   * @lasts until it is full
   */
  rateLimit: (partition: number, id: string) => inPartition(partition, `rate:${id}`),
  /**
   * the state of an MCP answer has come back, by the charge of the call that it answered
   * @lasts twice as long as such a state is good for
   */
  round: (partition: number, chargeId: string) => inPartition(partition, `round:${chargeId}`),
  /**
   * a gateway holds an open stream of MCP's older transport, which listens on this channel for refusals
   * @lasts at most a minute beyond the stream
   */
  listening: (partition: number, channel: string) => inPartition(partition, `listening:${channel}`),
};

/** The maximum of `UPSTREAM_TIMEOUT_SECONDS`. */
const LONGEST_CALL_MS = 86_400_000;

/** How long keys outlive their grant, and the minimum life of a tombstone: the longest call, plus an hour to settle it. */
export const KEYS_KEPT_MS = LONGEST_CALL_MS + 3_600_000;
