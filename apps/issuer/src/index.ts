export { createIssuer, type IssuerDeps, type IssuerEnv } from './app.ts';
export { bootstrap } from './bootstrap.ts';
export { readProviders } from './env.ts';
export { explainStart } from './explain-start.ts';
export { type RunningIssuer, startIssuer } from './start.ts';
