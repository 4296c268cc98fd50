import { mkdir, open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { OutboundProxy } from '@presign/outbound';
import type { ArchiveStore } from './archive.ts';
import { type S3Target, s3Store } from './archive-s3.ts';

/** Where rows go before they leave Postgres. */
export type ArchiveTarget = { readonly folder: string } | { readonly s3: S3Target };

export const openStore = (target: ArchiveTarget, proxy: OutboundProxy | undefined): ArchiveStore =>
  's3' in target ? s3Store(target.s3, proxy) : folderStore(target.folder);

/** Files in folders of a folder, readable by their owner alone. A file without a dot before its name is complete. */
function folderStore(folder: string): ArchiveStore {
  const put: ArchiveStore['put'] = async (name, bytes) => {
    const to = join(folder, name);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const unfinished = join(dirname(to), `.${name.replace(/^.*\//, '')}`);
    const file = await open(unfinished, 'w', 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, to);
    // A power failure may not take the new name back.
    const parent = await open(dirname(to));
    await parent.sync().finally(() => parent.close());
  };
  return { put, close: async () => {} };
}
