import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const VARIABLE = 'SERVICE_BUNDLES';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

type App = 'gateway' | 'issuer';

/** Once for all files: the services as their images contain them. From sources each start takes five times the CPU. */
export async function bundleServices(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'presign-services-'));
  const bundle = (app: App) =>
    promisify(execFile)(process.execPath, [join(ROOT, 'infra/docker/bundle.mjs'), join(folder, app)], {
      cwd: join(ROOT, 'apps', app),
    });
  await Promise.all([bundle('gateway'), bundle('issuer')]);
  process.env[VARIABLE] = folder;
  return () => rm(folder, { recursive: true });
}

/** The arguments with which Node runs an entry point of a service, from its bundle if there is one. */
export function entryPoint(app: App, name: 'main' | 'migrate' | 'cli'): readonly string[] {
  const folder = process.env[VARIABLE];
  return folder === undefined
    ? ['--import', 'tsx', join(ROOT, 'apps', app, 'src', `${name}.ts`)]
    : [join(folder, app, `${name}.js`)];
}
