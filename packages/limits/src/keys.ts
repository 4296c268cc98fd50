/** What Redis must know to find a grant: everything lies in one partition, so Redis Cluster works. */
export type GrantRef = {
  readonly id: string;
  readonly partition: number;
  readonly credentialId: string;
  /** The budgets it draws on: its own or its bundle's, then its virtual key's budget if there is one. */
  readonly budgetIds: readonly string[];
};

const inPartition = (partition: number, rest: string) =>
  `presign:{p${String(partition).padStart(2, '0')}}:${rest}`;

/** Redis keys. The hash tag puts all keys of a partition into one slot (Redis Cluster specification). */
export const keys = {
  partition: (partition: number) => inPartition(partition, 'partition'),
  grant: (partition: number, id: string) => inPartition(partition, `grant:${id}`),
  credential: (partition: number, id: string) => inPartition(partition, `credential:${id}`),
  budget: (partition: number, id: string) => inPartition(partition, `budget:${id}`),
  hold: (partition: number, id: string) => inPartition(partition, `hold:${id}`),
  leases: (partition: number) => inPartition(partition, 'leases'),
  usage: (partition: number) => inPartition(partition, 'usage'),
  survivors: (partition: number) => inPartition(partition, 'survivors'),
  /** Requests by the minute. */
  rateLimit: (partition: number, id: string) => inPartition(partition, `rate:${id}`),
  /** A stream of MCP's older transport that listens for refusals. */
  listening: (partition: number, channel: string) => inPartition(partition, `listening:${channel}`),
};
