export { createIssuer, type IssuerDeps, type IssuerEnv } from './app.ts';
export { bootstrap } from './bootstrap.ts';
export { runCli } from './cli/run-cli.ts';
export { readProviders } from './env.ts';
export { explainStart } from './explain-start.ts';
export { describeApi, type OpenApi } from './openapi/describe-api.ts';
export { type RunningIssuer, startIssuer } from './start.ts';
