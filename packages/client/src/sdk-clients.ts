import type { PresignAnswer } from '../generated/types.ts';
import { anthropicOptions, googleOptions, openaiOptions } from './sdk-options.ts';

/** The class of an SDK. Its package is the caller's, so that this one depends on none. */
type ClientClass = new (options: never) => unknown;

/** Options of the SDK. The address and the key are those of the issued URL. */
type MoreOptions<Class extends ClientClass> = Partial<NonNullable<ConstructorParameters<Class>[0]>>;

type Configured = <Class extends ClientClass>(
  Client: Class,
  options?: MoreOptions<Class>,
) => InstanceType<Class>;

/** The answer of `presign`, with clients that call its URL. As JSON it is the answer alone. */
export type IssuedUrl = PresignAnswer & {
  /** `issued.openai(OpenAI)`: a client of the package `openai`, for any provider that has OpenAI's API. */
  readonly openai: Configured;
  /** `issued.anthropic(Anthropic)`: a client of the package `@anthropic-ai/sdk`. */
  readonly anthropic: Configured;
  /** `issued.google(GoogleGenAI)`: a client of the package `@google/genai`. */
  readonly google: Configured;
};

/** Adds clients to an answer, in properties that no copy and no JSON of it has. */
export function withClients(answer: PresignAnswer): IssuedUrl {
  const google = (given: { httpOptions?: object } = {}) => {
    const own = googleOptions(answer);
    return { ...given, ...own, httpOptions: { ...given.httpOptions, ...own.httpOptions } };
  };
  return Object.defineProperties(answer, {
    openai: configured((given) => ({ ...given, ...openaiOptions(answer) })),
    anthropic: configured((given) => ({ ...given, ...anthropicOptions(answer) })),
    google: configured(google),
  }) as IssuedUrl;
}

const configured = (optionsOf: (given?: object) => object) => ({
  value: (Client: ClientClass, given?: object) => new Client(optionsOf(given) as never),
});
