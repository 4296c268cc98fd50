export { createIssuer } from './app.ts';
export { runCli } from './cli/run-cli.ts';
export type { IssuerDeps, IssuerEnv } from './deps.ts';
export { readRetention } from './env.ts';
export { bootstrap } from './keys/bootstrap.ts';
export { requestTraces } from './middleware/trace-requests.ts';
export { describeApi, type OpenApi } from './openapi/describe-api.ts';
export { type IssuerOptions, type RunningIssuer, startIssuer } from './start.ts';
export { addLateCalls, holdMarks } from './usage/sum-days.ts';
