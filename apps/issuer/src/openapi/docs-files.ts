import { existsSync } from 'node:fs';

/** What `infra/docker/bundle.mjs` puts next to the bundled code. Without it, the files are read where the repository has them. */
const BUNDLED = new URL('./docs-files/', import.meta.url);
const isBundled = existsSync(BUNDLED);

/** The one file of Scalar that a page needs. */
export const SCALAR = isBundled
  ? new URL('scalar.js', BUNDLED)
  : new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url);

/** The folder that has README.md and docs. */
export const ROOT = isBundled ? BUNDLED : new URL('../../../../', import.meta.url);
