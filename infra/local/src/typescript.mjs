// Loaded before a program in TypeScript, which then runs in the same process: by Node's own type stripping, or by tsx before Node 24, which
// has none or warns that it is new. The command `tsx` would keep a second process of 50 MB.
import module from 'node:module';
import { fileURLToPath } from 'node:url';

// In a folder of this user: V8 runs what it finds there. Node has the cache since 22.1.
module.enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url)));
if (Number.parseInt(process.versions.node, 10) < 24) await import('tsx/esm');
