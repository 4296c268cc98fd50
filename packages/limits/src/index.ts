export * from './account.ts';
export {
  type Admission,
  type Ask,
  admit,
  admitScript,
  BACKLOG_MAX,
  BACKLOG_ROOM,
  checkGrant,
  fixedHold,
  type Hold,
  hasLimit,
} from './admit.ts';
export * from './charge.ts';
export * from './credential.ts';
export * from './drain.ts';
export * from './ended.ts';
export * from './figures.ts';
export * from './grant.ts';
export * from './health.ts';
export * from './keys.ts';
export * from './once.ts';
export * from './redis.ts';
export * from './refused.ts';
export * from './settle.ts';
