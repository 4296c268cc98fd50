// Prints docs/reference/security-tests.md: the tests of each statement of SECURITY.md, the attacks, and every other file of security tests.
// Run: npx tsx docs/generate-security-tests.ts > docs/reference/security-tests.md
import { readdirSync, readFileSync } from 'node:fs';
import { markdownTable } from './markdown-table.ts';
import { type SecurityTests, statementsOf } from './security-statements.ts';

const ROOT = new URL('../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');
const { statements, attacks }: SecurityTests = JSON.parse(read('docs/security-tests.json'));

/** Test files of attacks, whatever else tests them. */
const SECURITY_FILE = /\.security\.test\.ts$|^test\/attacks\/[\w-]+\.test\.ts$/;

const SECTIONS = ['Promised', 'Not promised'].map((heading) => {
  const items = statementsOf(read('SECURITY.md'), heading).map(
    (name) => `**${name}**\n\n${(statements[name] ?? []).map((test) => `- ${linkTo(test)}`).join('\n')}`,
  );
  return `## ${heading}\n\n${items.join('\n\n')}`;
});

const ATTACKS = Object.entries(attacks).map(([asset, rows]) => {
  const cells = rows.map(({ attack, stops, tests }) => [attack, stops, tests.map(numbered).join(' ')]);
  return `### ${capitalized(asset)}\n\n${markdownTable(['Attack', 'What stops it', 'Tests'], cells)}`;
});

const named = new Set(
  [...Object.values(statements), ...Object.values(attacks).flatMap((rows) => rows.map(({ tests }) => tests))]
    .flat()
    .map((test) => test.split(' > ', 1)[0]),
);
const OTHERS = testFiles()
  .filter((file) => SECURITY_FILE.test(file) && !named.has(file))
  .map((file) => `- [${file}](../../${file})`);

process.stdout.write(`# Security tests

The tests of each statement of [SECURITY.md](../../SECURITY.md), by their names. \`%s\`, \`%j\` and \`$name\` stand for the cases of a
test. The attacks below once worked, or were tried: their tests repeat them.

${SECTIONS.join('\n\n')}

## Attacks

${ATTACKS.join('\n\n')}

## Further security tests

${OTHERS.join('\n')}
`);

/** A test as a link to its file: `test/e2e/limits.test.ts > its title`. */
function linkTo(test: string): string {
  const [file = '', title = ''] = test.split(/ > (.*)/s);
  return `[${escaped(title)}](../../${file})`;
}

/** A test of an attack, which the row describes. */
function numbered(test: string, i: number): string {
  return `[${i + 1}](../../${test.split(' > ', 1)[0]})`;
}

function escaped(title: string): string {
  return title.replace(/[[\]|<*_]/g, '\\$&').replaceAll("\\'", "'");
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function testFiles(): string[] {
  return ['apps', 'packages', 'test']
    .flatMap((folder) =>
      readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' }).map(
        (file) => `${folder}/${file}`,
      ),
    )
    .filter((file) => !file.includes('node_modules'))
    .sort();
}
