/** Tokens of a call. */
export type CallSize = { readonly input: number; readonly output: number };

type Rates = Readonly<Record<string, number | undefined>>;

/** The rates of a million tokens. */
export const tokenRates = (rates: Rates): { readonly [Kind in keyof CallSize]: number | undefined } => ({
  input: rates.input,
  output: rates.output,
});

/** The cost of a call in microdollars, rounded up as a charge is. Undefined: a rate is not known. */
export function callCost(rates: Rates, size: CallSize): number | undefined {
  const { input, output } = tokenRates(rates);
  if (input === undefined || output === undefined) return undefined;
  return Math.ceil((size.input * input + size.output * output) / 1_000_000);
}

type Most = { readonly dollars: number | undefined; readonly uses: number | undefined };

/** How many calls of a cost fit under the limits. Undefined: no limit ends them. */
export function callsUnder({ dollars, uses }: Most, cost: number): number | undefined {
  const byMoney = dollars === undefined || cost === 0 ? Number.POSITIVE_INFINITY : Math.floor(dollars / cost);
  const calls = Math.min(byMoney, uses ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(calls) ? calls : undefined;
}

/** A number of calls for display, with two significant digits. */
export function about(calls: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, calls))) - 1);
  return Math.floor(calls / step) * step;
}

type Sums = { readonly calls: number; readonly input_tokens: number; readonly output_tokens: number };

/** The average of some calls. Undefined: there are no calls. */
export const averageSize = ({
  calls,
  input_tokens: input,
  output_tokens: output,
}: Sums): CallSize | undefined =>
  calls === 0 ? undefined : { input: Math.round(input / calls), output: Math.round(output / calls) };
