export { createGateway } from './app.ts';
export type { GatewayDeps } from './deps.ts';
export { readBodyLimits, readMcpPricesFile } from './env.ts';
export { countRefusals } from './limits/refusal-counts.ts';
export { type GatewayOptions, type RunningGateway, startGateway } from './start.ts';
export { callTraces } from './traces.ts';
