/** docs/security-tests.json: each test is `its file > its title`. */
export type SecurityTests = {
  /** The tests of each statement of SECURITY.md. */
  readonly statements: Readonly<Record<string, readonly string[]>>;
  /** Attempts, by their target. */
  readonly attacks: Readonly<Record<string, readonly Attack[]>>;
};

type Attack = {
  readonly attack: string;
  readonly stops: string;
  readonly tests: readonly string[];
};

/** The bold beginning of each list item below a heading of SECURITY.md. */
export function statementsOf(page: string, heading: string): readonly string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return Array.from(section.matchAll(/^- \*\*(.+?)\*\*/gms), ([, name = '']) => name.replace(/\s+/g, ' '));
}
