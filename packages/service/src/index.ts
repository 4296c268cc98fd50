export * from './await-store.ts';
export * from './bound-lines.ts';
export * from './read-variable.ts';
export * from './variables.ts';
