import { startEmbeddedRedis } from '../../src/engines/embedded-redis.ts';

const { url } = await startEmbeddedRedis({ dir: process.argv[2] ?? '' });
process.stdout.write(`${url}\n`);
