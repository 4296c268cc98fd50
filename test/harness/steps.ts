import { Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';

/**
 * Counts what the services of this process do, by how often V8 runs each block of their code: the same work has the same
 * number on every machine. Strings that are normalized count by their lengths, because that is no code of ours.
 *
 * Start it before the services are imported: V8 counts no blocks of code that it has compiled already.
 */
export async function countSteps(): Promise<StepCounter> {
  // Code that V8 has optimized does not count its calls, and when it optimizes depends on the machine's load.
  for (const flag of ['--no-opt', '--no-maglev']) setFlagsFromString(flag);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  let normalized = 0;
  const { normalize } = String.prototype;
  String.prototype.normalize = function (this: string, form) {
    const text = normalize.call(this, form);
    normalized += this.length + text.length;
    return text;
  };
  const take = async (): Promise<number> => {
    // Each take begins at zero again.
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const blocks = result.filter(({ url }) => SOURCES.test(url)).flatMap(({ functions }) => functions);
    const steps = blocks.flatMap(({ ranges }) => ranges).reduce((sum, { count }) => sum + count, 0);
    const all = steps + normalized;
    normalized = 0;
    return all;
  };
  return {
    during: async (work) => {
      await take();
      await work();
      return take();
    },
    stop: () => {
      String.prototype.normalize = normalize;
      session.disconnect();
    },
  };
}

export type StepCounter = {
  /** The steps of all services while some work runs. */
  readonly during: (work: () => Promise<unknown>) => Promise<number>;
  readonly stop: () => void;
};

const SOURCES = /\/(?:apps|packages)\/[^/]+\/src\//;
