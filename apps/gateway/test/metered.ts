import { BUILT_IN_PROVIDERS, type Spend, spendOf as spendOn } from '@presign/providers';
import { createMeter, type MeterOptions } from '../src/llm/meter.ts';
import { bodyMemory } from '../src/share/body-memory.ts';

/** The bytes that the holder gets, and the usage that is read, for an answer in these chunks. */
export async function metered(options: MeterOptions, chunks: readonly (Buffer | string)[]) {
  const meter = createMeter(options);
  const passed = chunks.flatMap((chunk) => meter.pass(Buffer.from(chunk)) ?? []);
  const { rest, ...told } = await meter.end();
  return {
    ...told,
    early: String(Buffer.concat(passed)),
    all: String(Buffer.concat([...passed, ...(rest ? [rest] : [])])),
  };
}

/** Memory for one answer of any length. */
export const roomy = () => bodyMemory(2 ** 30, 2 ** 30).newReservation();

/** The usage that every answer of these tests reports. */
export const COUNTS = { input_tokens: 20, output_tokens: 30 };

/** The spending rules of a built-in provider's endpoint. */
export const spendOf = (provider: string, path: string): Spend => {
  const found = BUILT_IN_PROVIDERS.get(provider);
  const spend = found && spendOn(found, path);
  if (!spend) throw new Error(path);
  return spend;
};
