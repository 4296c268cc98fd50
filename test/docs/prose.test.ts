import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Habits that make a reader read twice, each with what to write instead. */
const HABITS: readonly (readonly [RegExp, string])[] = [
  [/\bnobody\b/i, 'name who: "The estimate does not cover it."'],
  [/\banew\b/i, '"again"'],
  [/\bmend(s|ed|ing)?\b/i, '"fix", "correct"'],
  [/\btold\b|\btells? of\b|\btelling of\b/i, '"notified", "reported", "states"'],
  [/\b(?<!there )(is|are|was) none\b/i, '"does not exist", "has no …"'],
  [/\bbut for\b/i, '"except"'],
  [/\bas it stands\b/i, '"unchanged"'],
  [/\bbeside\b/i, '"next to", "in addition to"'],
  [/\b(comes?|came|coming) to (?:be|lie|an end|more|less|it|\d)/i, '"is", "amounts to"'],
  [/(?:^|[.:;!] )(?:What of|Who|Of [a-z]+)\b(?![^.]*\?)/, 'begin with the subject'],
  [/(?:^|[.] )What [a-z]+ (?=(?:\S+ ){3})(?![^.]*\?)/, 'begin with the subject'],
];

/** The habits of a text, each as `habit: the words around it`. */
function habitsIn(text: string): string[] {
  return HABITS.flatMap(([habit, instead]) => {
    const found = habit.exec(text);
    if (!found) return [];
    const around = text.slice(Math.max(0, found.index - 30), found.index + 50).trim();
    return [`"${around}": write ${instead}`];
  });
}

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && !file.startsWith('patches/') && file !== 'test/docs/prose.test.ts');
const read = (file: string): string => {
  try {
    return readFileSync(join(ROOT, file), 'utf8');
  } catch {
    return '';
  }
};

const found = (names: readonly string[], proseOf: (text: string) => readonly string[]) =>
  names.flatMap((file) =>
    proseOf(read(file))
      .flatMap(habitsIn)
      .map((habit) => `${file}: ${habit}`),
  );

describe('the prose of the project has none of the habits that CONTRIBUTING.md asks to avoid', () => {
  test('in Markdown', () => {
    expect(
      found(
        files.filter((file) => file.endsWith('.md')),
        paragraphsOf,
      ),
    ).toEqual([]);
  });

  test('in comments and texts of the source', () => {
    const sources = files.filter((file) => /\/src\/.*\.(tsx?|lua)$/.test(file));
    expect(sources.length).toBeGreaterThan(100);
    expect(found(sources, sourceProse)).toEqual([]);
  });

  test('in the examples, and in the tests of the packages that both services share', () => {
    const others = files.filter((file) =>
      /^(examples|docs|infra|packages\/(client|crypto|outbound|schema))\/.*\.ts$/.test(file),
    );
    expect(others.length).toBeGreaterThan(50);
    expect(found(others, sourceProse)).toEqual([]);
  });

  test('in the names and comments of all tests', () => {
    const tests = files.filter((file) => /^(.*\/)?test\/.*\.ts$/.test(file));
    expect(tests.length).toBeGreaterThan(250);
    expect(found(tests, testProse)).toEqual([]);
  });
});

test('the habits are found, and good sentences pass', () => {
  const page = '# What it does\n\nIt is\ntold anew.\n\n```\nnobody\n```\n\n- Of a key only a hash is kept.\n';
  expect(paragraphsOf(page).flatMap(habitsIn)).toHaveLength(3);
  const source = "/** It is\n * mended. */\nconst a = 'Who calls again.'; // Nobody.\nconst told = 1;";
  expect(sourceProse(source).flatMap(habitsIn)).toHaveLength(3);
  const tests = "/** Who calls again. */\ntest.each(['told '])('is none', () => 'a //nobody'); // Told.\n";
  expect(testProse(tests).flatMap(habitsIn)).toHaveLength(3);
  const good = ['What is a grant? It is a permission.', 'The cost of a call.', 'Besides, it comes to rest.'];
  expect(good.flatMap(habitsIn)).toEqual([]);
});

/** Paragraphs, list items and table cells, without code and headings. */
function paragraphsOf(page: string): string[] {
  const text = page
    .replace(/^```.*?^```$/gms, '')
    .replace(/`[^`\n]*`/g, 'X')
    .replace(/\]\([^)]*\)/g, ']');
  return text
    .split(/\n\s*\n|\n\s*(?=[-*|] |\d+\. |#)|\|/)
    .filter((block) => !/^\s*#/.test(block))
    .map((block) => oneLine(block.replace(/^\s*([-*]|\d+\.)\s+/, '')));
}

/** Comments and string literals of more than one word. */
function sourceProse(source: string): string[] {
  const comments = source.match(/\/\*.*?\*\/|(?:\/\/|^\s*--)[^\n]*(?:\n\s*(?:\/\/|--)[^\n]*)*/gms) ?? [];
  const code = comments.reduce((rest, comment) => rest.replace(comment, ''), source);
  const texts =
    code.match(/'(?:[^'\\\n]|\\.)* (?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|"[^"\n]* [^"\n]*"/g) ?? [];
  return [
    ...comments.map((comment) =>
      oneLine(comment.replace(/^\s*(\/\*+|\*+\/?|\/\/|--)\s?/gm, '').replace(/`[^`\n]*`/g, 'X')),
    ),
    ...texts.map((text) => oneLine(text.slice(1, -1))),
  ];
}

/** Comments and names of tests, without the data in them. */
function testProse(source: string): string[] {
  const comments =
    source.match(/(?<=^|\s)(?:\/\*\*? .*?\*\/|\/\*\*\n.*?\*\/|(?:\/\/ [^\n]*(?:\n\s*)?)+)/gms) ?? [];
  const names = source.matchAll(
    /(?:\b(?:test|it|describe)(?:\.\w+)*|[\])])\(\s*('(?:[^'\\\n]|\\.)*'|"[^"\n]*"|`[^`]*`)/g,
  );
  return [...comments.flatMap(sourceProse), ...[...names].map(([, name = '']) => oneLine(name.slice(1, -1)))];
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();
