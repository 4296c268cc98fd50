export { openEmbeddedPostgres } from './embedded-postgres.ts';
export { startEmbeddedRedis } from './embedded-redis.ts';
export { type LocalEnv, readLocalEnv } from './env.ts';
export { migrateEmbedded } from './migrate-embedded.ts';
export { type RunningLocal, runLocal } from './run.ts';
export { startSandboxLlm } from './sandbox-llm.ts';
export { startSandboxMcp } from './sandbox-mcp.ts';
