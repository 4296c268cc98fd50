import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { type Fence, fencesIn } from './fences.ts';
import type { Local } from './local.ts';
import { expectAsShown } from './shown.ts';

const GUIDES = new URL('../../docs/guides/', import.meta.url);

/** A request of a guide in curl, Python and TypeScript, which the site shows as tabs. */
export type Tabs = {
  /** The commands of the page up to the request, and the request. */
  readonly commands: string;
  readonly python: string;
  readonly ts: string;
  /** The output of each. */
  readonly shown: Fence | undefined;
};

function tabsIn(page: string): readonly Tabs[] {
  const fences = fencesIn(page);
  return fences.flatMap(({ language }, place) => {
    const [python, ts, shown] = fences.slice(place + 1);
    if (language !== 'bash' || python?.language !== 'python' || ts?.language !== 'ts') return [];
    const commands = fences.slice(0, place + 1).filter((each) => each.language === 'bash');
    return [
      {
        commands: commands.map(({ code }) => code).join('\n'),
        python: python.code,
        ts: ts.code,
        shown: shown && ['json', ''].includes(shown.language) ? shown : undefined,
      },
    ];
  });
}

/** The requests with tabs of all guides, except the one whose programs print less than its curl. */
export const tabbed = readdirSync(GUIDES)
  .filter((name) => name.endsWith('.md') && name !== 'issue-a-url.md')
  .flatMap((name) => tabsIn(readFileSync(new URL(name, GUIDES), 'utf8')).map((tabs) => ({ name, ...tabs })));

/**
 * Runs the commands of a page, and then a program in place of the last request. The program must end well, and print what the page
 * shows.
 */
export async function expectProgramAsShown(
  local: Local,
  { commands, shown }: Tabs,
  program: string,
): Promise<void> {
  const script = `{\n${local.here(commands)}\n} > /dev/null\n${program}\nprintf '${ENDED}'`;
  const [printed = '', end] = (await local.run('bash', ['-euo', 'pipefail', '-c', script])).split(ENDED);
  expect(end, printed).toBe('');
  expectAsShown(printed, shown);
}

const ENDED = '\n--- ended well ---\n';
