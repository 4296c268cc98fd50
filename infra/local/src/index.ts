export { startEmbeddedPostgres } from './engines/embedded-postgres.ts';
export { startEmbeddedRedis } from './engines/embedded-redis.ts';
export { type LocalEnv, readLocalEnv } from './env.ts';
export { type RunningLocal, runLocal } from './run.ts';
export { startSandboxLlm } from './sandbox/llm.ts';
export { startSandboxMcp } from './sandbox/mcp.ts';
export { tone } from './sandbox/sound.ts';
