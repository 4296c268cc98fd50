export * from './claims.ts';
export * from './errors.ts';
export * from './json.ts';
export * from './money.ts';
export * from './presign.ts';
export * from './refuse.ts';
export * from './usage.ts';
export * from './variables.ts';
