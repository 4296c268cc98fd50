/**
 * Takes the time of a recovery from here on. The page of outages has these figures.
 * @returns a function that prints it, for when calls pass again
 */
export function timeRecovery(outage: string): () => void {
  const began = performance.now();
  return () => {
    const seconds = ((performance.now() - began) / 1_000).toFixed(2);
    process.stdout.write(`recovery: ${outage}: ${seconds} s\n`);
  };
}
