import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** One thing that a client program does with a URL. */
export type Case = {
  /** Names it in the program's output. */
  readonly name: string;
  /** The program's function. */
  readonly do: string;
  readonly url: string;
  /** Whether the client may retry. */
  readonly retries: boolean;
};

/** The outcome of a case in a program: an answer, or the error that it caught. */
export type Saw = {
  readonly case: string;
  readonly answer?: string;
  readonly error?: {
    readonly type: string;
    /** The error as text, which a program logs. */
    readonly text: string;
    /** Its fields, which a program reads. */
    readonly fields: string;
  };
};

/** Runs a client program on cases, and returns what it printed about each. */
export async function runCases(
  command: readonly [program: string, ...args: string[]],
  cases: readonly Case[],
): Promise<ReadonlyMap<string, Saw>> {
  const [program, ...args] = command;
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, CASES: JSON.stringify(cases) };
  const output = await new Promise<string>((resolve, reject) => {
    execFile(program, args, { env, timeout: 280_000 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command.join(' ')}: ${stderr.slice(-3_000)}`, { cause: error }));
      else resolve(stdout);
    });
  });
  const lines = output.split('\n').filter((line) => line.startsWith('{'));
  return new Map(lines.map((line) => JSON.parse(line) as Saw).map((saw) => [saw.case, saw]));
}

/** A program of the folder `python`. */
export const pythonProgram = (name: string): string => join(import.meta.dirname, 'python', `${name}.py`);
