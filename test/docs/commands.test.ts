import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fencesIn } from './fences.ts';

const ROOT = new URL('../../', import.meta.url);
const GUIDES = new URL('docs/guides/', ROOT);
/** Pages for people who have Node, and perhaps no pnpm. */
const forUsers = [
  'README.md',
  'docs/README.md',
  'docs/reference/command-line.md',
  'docs/reference/configuration.md',
  ...readdirSync(GUIDES, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/guides/${name}`),
];

const pages = [...forUsers, 'CONTRIBUTING.md'];

/** Commands of pnpm itself, which need no script. */
const BUILT_IN = new Set(['pack', 'exec', 'install']);

/** `pnpm SCRIPT` and `pnpm --filter @presign/MEMBER SCRIPT`, in fences and in code of running text. */
const COMMAND = /\b(?:npx -y pnpm@12|pnpm)(?: --filter @presign\/(\w+))? ([a-z][\w-]*)/g;

const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8');
const codeOf = (page: string): string[] => [
  ...fencesIn(page).map(({ code }) => code),
  ...Array.from(page.matchAll(/`([^`\n]+)`/g), ([, code = '']) => code),
];
const commandsIn = (page: string): RegExpMatchArray[] =>
  codeOf(page).flatMap((code) => [...code.matchAll(COMMAND)]);

test.each(forUsers)('%s writes commands that need no pnpm', (name) => {
  for (const code of codeOf(read(name)))
    expect(code).not.toMatch(/(?<!npx (?:--offline )?-y )\bpnpm(?:@12)? /);
});

test('every pnpm script that a page names exists', () => {
  const commands = pages.flatMap((name) => commandsIn(read(name)).map((match) => ({ name, match })));
  expect(commands.length).toBeGreaterThan(15);
  for (const { name, match } of commands) {
    const [command, member, script = ''] = match;
    if (!BUILT_IN.has(script))
      expect(scriptsOf(member), `${name}: ${command}`).toHaveProperty([script.split(':')[0] ?? '']);
  }
});

function scriptsOf(member: string | undefined): object {
  const folders = member ? [`apps/${member}`, `packages/${member}`, `infra/${member}`, member] : ['.'];
  const file = folders
    .map((folder) => new URL(`${folder}/package.json`, ROOT))
    .find((url) => existsSync(url));
  if (!file) throw new Error(`no package @presign/${member}`);
  return (JSON.parse(readFileSync(file, 'utf8')) as { scripts?: object }).scripts ?? {};
}
