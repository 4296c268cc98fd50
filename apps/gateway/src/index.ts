export { createGateway, type GatewayDeps } from './app.ts';
export { readMcpPricesFile } from './env.ts';
export { type GatewayOptions, type RunningGateway, startGateway } from './start.ts';
