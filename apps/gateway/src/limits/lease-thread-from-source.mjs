// Starts `lease-thread.ts` without a build: on Node 20, threads do not have the loader that the process was started with.
import { tsImport } from 'tsx/esm/api';

await tsImport('./lease-thread.ts', import.meta.url);
