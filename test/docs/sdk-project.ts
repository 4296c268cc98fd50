import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Stack, startStack } from '../harness/stack.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import { PROVIDERS } from './client-pages.ts';

/** A stack with all providers of the guides, and a folder whose programs find the SDKs as a project's own files would. */
export type SdkProject = {
  readonly stack: Stack;
  readonly folder: string;
  readonly upstreams: ReadonlyMap<string, PacedUpstream>;
  readonly close: () => Promise<void>;
};

export async function openSdkProject(): Promise<SdkProject> {
  const upstreams = new Map<string, PacedUpstream>();
  for (const [name, { start }] of PROVIDERS) upstreams.set(name, await start());
  const providers = Object.fromEntries(Array.from(upstreams, ([name, { url }]) => [name, { base_url: url }]));
  const stack = await startStack({ providers });
  const folder = mkdtempSync(join(tmpdir(), 'presign-'));
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));
  const close = async () => {
    await stack.close();
    for (const upstream of upstreams.values()) await upstream.close();
    rmSync(folder, { recursive: true });
  };
  return { stack, folder, upstreams, close };
}
