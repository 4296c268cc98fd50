import { workerData } from 'node:worker_threads';
import { loadProviders } from '@presign/providers';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { readMessages } from '../mcp/messages.ts';
import { type PlanReply, type PlanWork, planInWorker } from './plan-in-worker.ts';

/** The data that a worker starts with. */
export type WorkerStart = {
  /** `PROVIDERS_FILE`. */
  readonly providersFile: string | undefined;
};

const providers = loadProviders((workerData as WorkerStart).providersFile);

/** Reads and plans an LLM call. The body goes back without being copied. */
export function plan(work: PlanWork) {
  const reply = planInWorker(providers, work);
  const buffers = new Set('plan' in reply ? reply.plan.body.map((part) => part.buffer as ArrayBuffer) : []);
  return move({ [transferableSymbol]: [...buffers], [valueSymbol]: reply satisfies PlanReply });
}

/** Reads the messages of an MCP call. */
export const messages = (bytes: Uint8Array) =>
  readMessages(Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength));
