import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { gzipSync } from 'node:zlib';
import { RefusedError } from '@presign/schema';
import type { Context, Hono } from 'hono';
import { pagePolicy } from '../answers/page-policy.ts';
import type { IssuerEnv } from '../identity/caller.ts';

type Files = {
  /** The folder of the built console. */
  readonly consoleDir?: string | undefined;
  readonly gatewayUrl: string;
};

/** Serves the built console below `/console/`. Without a folder there is no console. */
export function serveConsole(app: Hono<IssuerEnv>, { consoleDir, gatewayUrl }: Files): void {
  if (consoleDir === undefined) return;
  const { origin } = new URL(gatewayUrl);
  // The playground has turns on sockets, too.
  const policy = pagePolicy(origin, origin.replace(/^http/, 'ws'));
  let files: ReadonlyMap<string, Asset> | undefined;
  const assets = () => {
    files ??= readAssets(consoleDir);
    return files;
  };
  // Relative, so that it is right behind any prefix of the path.
  app.get('/console', (c) => c.body(null, 308, { location: 'console/' }));
  app.get('/console/*', (c) => {
    const all = assets();
    if (!all) return c.text(BUILDING, 503, { 'retry-after': '2' });
    const asset = all.get(c.req.path.slice('/console/'.length) || 'index.html');
    if (!asset) throw new RefusedError({ code: 'not_found' });
    return send(c, asset, policy);
  });
}

const BUILDING = 'The console is being built. Reload this page in a few seconds.\n';

/** A file of the console, in memory. */
type Asset = {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly gzipped: Uint8Array<ArrayBuffer>;
  /** Its name has a hash of its content. */
  readonly isHashed: boolean;
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** All files by their path. A request names one of these, so no path leads out of the folder. Undefined: nothing is built yet. */
function readAssets(dir: string): ReadonlyMap<string, Asset> | undefined {
  if (!existsSync(join(dir, 'index.html'))) return undefined;
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(
    (name) => extname(name) in TYPES,
  );
  return new Map(names.map((name) => [name.split(sep).join('/'), readAsset(join(dir, name))]));
}

function readAsset(file: string): Asset {
  const bytes = new Uint8Array(readFileSync(file));
  return {
    type: TYPES[extname(file)] ?? '',
    bytes,
    gzipped: new Uint8Array(gzipSync(bytes, { level: 9 })),
    isHashed: /-[\w-]{8}\.\w+$/.test(file),
  };
}

function send(c: Context<IssuerEnv>, asset: Asset, policy: string): Response {
  const { type, bytes, gzipped, isHashed } = asset;
  const isZipped = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
  return c.body(isZipped ? gzipped : bytes, 200, {
    'content-type': type,
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    vary: 'accept-encoding',
    ...(isZipped && { 'content-encoding': 'gzip' }),
    ...(isHashed && { 'cache-control': 'public, max-age=31536000, immutable' }),
  });
}
