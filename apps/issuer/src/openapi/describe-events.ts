import { webhookEvent } from '@presign/schema';
import { type JsonSchema, toJsonSchema } from './json-schema.ts';

/** An OpenAPI Path Item Object of `webhooks`: what is sent, and what is expected to be answered. */
export type Event = {
  readonly post: {
    readonly summary: string;
    readonly parameters: typeof HEADERS;
    readonly requestBody: {
      readonly required: true;
      readonly content: { readonly 'application/json': { readonly schema: JsonSchema } };
    };
    readonly responses: { readonly '2XX': { readonly description: string } };
  };
};

/** Every event that endpoints are sent, by its type. */
export const describeEvents = (): Record<string, Event> =>
  Object.fromEntries(webhookEvent.options.map((event) => [event.shape.type.value, describeEvent(event)]));

function describeEvent(event: (typeof webhookEvent.options)[number]): Event {
  const { description = '', ...schema } = toJsonSchema(event, 'output');
  return {
    post: {
      summary: description,
      parameters: HEADERS,
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: { '2XX': { description: 'It has arrived, and is not sent again.' } },
    },
  };
}

/** As Standard Webhooks names them. */
const HEADERS = [
  header('webhook-id', 'The same at every attempt: an event that was seen before can be passed over.'),
  header('webhook-timestamp', 'Unix time in seconds of this attempt.'),
  header('webhook-signature', 'Signatures of `id.timestamp.body`: `v1,` and base64, separated by spaces.'),
] as const;

function header(name: string, description: string) {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } } as const;
}
