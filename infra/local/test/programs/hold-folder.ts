import { lockFolder } from '../../src/engines/lock-folder.ts';

try {
  await lockFolder(process.argv[2] ?? '');
  process.stdout.write('held\n');
  setInterval(() => {}, 60_000);
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : error}\n`);
}
