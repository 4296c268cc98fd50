import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RefusedError } from '@presign/schema';
import type { Context, Hono } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';

/** The packages of the clients for npm and pip. */
export type ClientPackages = {
  /** Resolves with their folder. It is asked for on the first request. */
  readonly dir: () => Promise<string>;
  /** They are those of a release, so that the bytes of a name never change. */
  readonly isReleased: boolean;
};

type Options = { readonly clientPackages?: ClientPackages | undefined; readonly issuerUrl: string };

/**
 * Serves the packages of the clients below `/clients/`, so that npm and pip install the version of this issuer from it. They need no API
 * key and contain no secret.
 */
export function serveClients(app: Hono<IssuerEnv>, { clientPackages, issuerUrl }: Options): void {
  if (!clientPackages) return;
  const { dir, isReleased } = clientPackages;
  let read: Promise<Packages> | undefined;
  const packages = () => {
    read ??= dir().then(readPackages);
    // A build that failed may succeed the next time.
    read.catch(() => {
      read = undefined;
    });
    return read;
  };
  const named = async (ends: string) =>
    [...(await packages())].find(([name]) => name.endsWith(ends))?.[0] ?? '';

  // Relative, so that they are right behind any prefix of the path.
  app.get('/clients', (c) => c.body(null, 308, { location: 'clients/' }));
  app.get('/clients/', async (c) => page(c, 'Clients of this issuer', linksOf(await packages(), '')));
  // https://packaging.python.org/en/latest/specifications/simple-repository-api
  app.get('/clients/simple/', (c) =>
    page(c, 'Simple index', ['<a href="presign-client/">presign-client</a>']),
  );
  app.get('/clients/simple/presign-client/', async (c) => {
    const wheels = [...(await packages())].filter(([name]) => name.startsWith('presign_client'));
    return page(c, 'Links for presign-client', linksOf(new Map(wheels), '../../'));
  });
  app.get('/clients/presign-client.tgz', async (c) => c.redirect(await named('.tgz')));
  // pip reads the version from the name of a wheel, before it asks for the wheel. So no other name can lead to it.
  app.get('/clients/requirements.txt', async (c) =>
    c.text(`presign-client @ ${issuerUrl}/clients/${await named('.whl')}\n`),
  );
  app.get('/clients/:file', async (c) => {
    const file = (await packages()).get(c.req.param('file'));
    if (!file) throw new RefusedError({ code: 'not_found' });
    return send(c, file, isReleased);
  });
}

/** A file in memory, with its SHA-256. */
type File = { readonly bytes: Uint8Array<ArrayBuffer>; readonly sha256: Buffer; readonly type: string };
type Packages = ReadonlyMap<string, File>;

/** All files by their name. A request names one of these, so no path leads out of the folder. */
async function readPackages(dir: string): Promise<Packages> {
  const names = (await readdir(dir)).filter((name) => /\.(tgz|tar\.gz|whl)$/.test(name)).sort();
  const readOne = async (name: string): Promise<[string, File]> => {
    const bytes = new Uint8Array(await readFile(join(dir, name)));
    const type = name.endsWith('.whl') ? 'application/zip' : 'application/gzip';
    return [name, { bytes, sha256: createHash('sha256').update(bytes).digest(), type }];
  };
  return new Map(await Promise.all(names.map(readOne)));
}

function send(c: Context<IssuerEnv>, { bytes, sha256, type }: File, isReleased: boolean): Response {
  const etag = `"${sha256.toString('base64url')}"`;
  const headers = {
    etag,
    'cache-control': isReleased ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
  // RFC 9110 §13.1.2: any of a list, strong or weak.
  const known = c.req.header('if-none-match')?.split(',') ?? [];
  if (known.some((each) => each.trim().replace(/^W\//, '') === etag)) return c.body(null, 304, headers);
  return c.body(bytes, 200, {
    ...headers,
    'content-type': type,
    'content-length': String(bytes.length),
    // RFC 9530
    'repr-digest': `sha-256=:${sha256.toString('base64')}:`,
  });
}

/** Links as pip reads them: it checks the file against the hash. */
const linksOf = (packages: Packages, to: string): string[] =>
  Array.from(packages, ([name, { sha256 }]) => {
    return `<a href="${to}${name}#sha256=${sha256.toString('hex')}">${name}</a>`;
  });

const page = (c: Context<IssuerEnv>, title: string, links: readonly string[]): Response =>
  c.html(
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>${title}</title>\n</head>\n<body>\n<h1>${title}</h1>\n${links.join('<br>\n')}\n</body>\n</html>\n`,
    200,
    {
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  );
