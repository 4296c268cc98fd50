// The embedded Redis declares Node 22, and needs nothing that Node 20.19 lacks: CI runs all tests on Node 20 too. Scalar runs in browsers.
const RUN_ON_NODE_20 = new Set(['js-redis-server', 'lua-redis-wasm', '@scalar/api-reference']);

// The issuer serves one file of Scalar, which contains all it needs. Its dependencies are 270 packages that nothing loads.
const COMPLETE = '@scalar/api-reference';

export const hooks = {
  readPackage(manifest) {
    if (RUN_ON_NODE_20.has(manifest.name)) manifest.engines = { node: '>=20.19' };
    if (manifest.name === COMPLETE) manifest.dependencies = {};
    return manifest;
  },
};
