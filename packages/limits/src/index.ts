export * from './admit.ts';
export * from './connect.ts';
export * from './drain.ts';
export * from './keys.ts';
export * from './leases.ts';
export * from './open.ts';
export * from './revoke.ts';
export type { RedisClient } from './script.ts';
export * from './settle.ts';
