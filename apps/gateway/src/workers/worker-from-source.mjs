// Starts `worker.ts` without a build: on Node 20, threads do not have the loader that the process was started with.
import { tsImport } from 'tsx/esm/api';

export const { plan, count, countTexts, messages } = await tsImport('./worker.ts', import.meta.url);
