import { existsSync } from 'node:fs';

/** What `infra/docker/bundle.mjs` puts next to the bundled code. Without it, the files are read where the repository has them. */
const BUNDLED = new URL('./docs-files/', import.meta.url);
const isBundled = existsSync(BUNDLED);

/** The folder that has README.md and docs. */
export const ROOT = isBundled ? BUNDLED : new URL('../../../../', import.meta.url);

/** The style, the script and the icon of the pages. */
export const ASSETS = isBundled ? new URL('assets/', BUNDLED) : new URL('./assets/', import.meta.url);

/** The one file of Scalar that the page of the API needs. */
export const SCALAR = isBundled
  ? new URL('scalar.js', BUNDLED)
  : new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url);
