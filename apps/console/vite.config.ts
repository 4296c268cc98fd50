import { defineConfig } from 'vite';

export default defineConfig({
  // Relative, because the issuer's address may have a path.
  base: './',
  build: { target: 'es2023', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
});
