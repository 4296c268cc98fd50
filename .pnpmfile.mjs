// The embedded Redis declares Node 22, and needs nothing that Node 20.19 lacks: CI runs all tests on Node 20 too.
const RUN_ON_NODE_20 = new Set(['js-redis-server', 'lua-redis-wasm']);

export const hooks = {
  readPackage(manifest) {
    if (RUN_ON_NODE_20.has(manifest.name)) manifest.engines = { node: '>=20.19' };
    return manifest;
  },
};
