export { createGateway } from './app.ts';
export type { GatewayDeps } from './deps.ts';
export { readBodyLimits, readMcpPricesFile, readSocketBounds } from './env.ts';
export { sendRefused } from './limits/refused-calls.ts';
export { type GatewayOptions, type RunningGateway, startGateway } from './start.ts';
export { callTraces } from './traces.ts';
