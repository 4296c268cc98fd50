// Prints docs/reference/security-tests.md: the tests of each statement of SECURITY.md, the attacks, and every other file of security tests.
// Run: npx tsx docs/generate-security-tests.ts > docs/reference/security-tests.md
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

const ROOT = new URL('../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');

/** docs/security-tests.json: each test is `its file > its title`. */
type SecurityTests = {
  /** The tests of each statement of SECURITY.md, by its heading. */
  readonly statements: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  /** Attempts, by their target. */
  readonly attacks: Readonly<Record<string, readonly Attack[]>>;
};

type Attack = { readonly attack: string; readonly stops: string; readonly tests: readonly string[] };

const { statements, attacks }: SecurityTests = JSON.parse(read('docs/security-tests.json'));

/** Test files of attacks, whatever else tests them. */
const SECURITY_FILE = /\.security\.test\.ts$|^test\/attacks\/[\w-]+\.test\.ts$/;

const SECTIONS = Object.entries(statements).map(([heading, tests]) => {
  const items = Object.entries(tests).map(([name, each]) => `- **${name}** ${linksTo(each)}`);
  return `## ${heading}\n\n${items.join('\n')}`;
});

const ATTACKS = Object.entries(attacks).map(([asset, rows]) => {
  const items = rows.map(({ attack, tests }) => `- **${capitalized(attack)}.** ${linksTo(tests)}`);
  return `### ${capitalized(asset)}\n\n${items.join('\n')}`;
});

const tests = [
  Object.values(statements).map((each) => Object.values(each)),
  Object.values(attacks).map((rows) => rows.map((row) => row.tests)),
];
const named = new Set(tests.flat(4).map((test) => test.split(' > ', 1)[0]));
const OTHERS = testFiles().filter((file) => SECURITY_FILE.test(file) && !named.has(file));

process.stdout.write(`# Security tests

The files with the tests of each statement of [SECURITY.md](../../SECURITY.md). The attacks once worked, or were tried: their tests repeat
them. \`docs/security-tests.json\` has the titles of the tests, and what stops each attack.

${SECTIONS.join('\n\n')}

## Attacks

${ATTACKS.join('\n\n')}

## Further security tests

${linksTo(OTHERS)}.
`);

/** The files of tests, each as a link: `[limits](../../test/e2e/limits.test.ts)`. */
function linksTo(tests: readonly string[]): string {
  const files = new Set(tests.map((test) => test.split(' > ', 1)[0] ?? ''));
  return Array.from(
    files,
    (file) => `[${basename(file).replace(/(\.security)?\.test\.ts$/, '')}](../../${file})`,
  ).join(', ');
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
