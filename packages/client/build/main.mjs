// Writes the packages of both clients for npm and pip into a folder: node main.mjs FOLDER [REPOSITORY]
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pythonPackages } from '../../client-python/build.mjs';
import { npmPackage } from './npm-package.mjs';

const [folder = 'dist', repository] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
for (const [name, bytes] of [npmPackage(repository), ...pythonPackages(repository)]) {
  const file = resolve(join(folder, name));
  writeFileSync(file, bytes);
  console.log(file);
}
