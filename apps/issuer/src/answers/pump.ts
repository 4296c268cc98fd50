/**
 * Writes texts as they are taken. The answer breaks off when one fails, or when reading takes too long.
 * @param longestMs how long the caller may take to read all of them
 * @param eachMs how long it may take to read one
 */
export async function pump(
  writable: WritableStream<Uint8Array>,
  texts: AsyncIterable<string>,
  longestMs?: number,
  eachMs?: number,
): Promise<void> {
  const writer = writable.getWriter();
  const abortIn = (ms: number | undefined) =>
    ms === undefined
      ? undefined
      : setTimeout(() => void writer.abort(new Error('the caller reads too slowly')).catch(() => {}), ms);
  const cut = abortIn(longestMs);
  try {
    for await (const text of texts) {
      const stalled = abortIn(eachMs);
      await writer.write(Buffer.from(text)).finally(() => clearTimeout(stalled));
    }
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  } finally {
    clearTimeout(cut);
  }
}
