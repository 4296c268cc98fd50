export { createGateway, type GatewayDeps } from './app.ts';
export { readMcpPricesFile } from './env.ts';
export { isReserved } from './guard-address.ts';
export { type GatewayOptions, type RunningGateway, startGateway } from './start.ts';
