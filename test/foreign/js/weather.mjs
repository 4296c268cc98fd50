/** The prompt of each case, and the tool that the second one needs. */
export const HELLO = 'Hello';
export const ASKS_WEATHER = 'What is the weather in Paris?';
export const NAME = 'get_weather';
export const DESCRIPTION = 'Current weather of a city';
export const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
/** A tool as APIs that follow OpenAI take it. */
export const WEATHER = {
  type: 'function',
  function: { name: NAME, description: DESCRIPTION, parameters: SCHEMA },
};

/** A tool call as text. SDKs give the arguments as JSON or as an object. */
export const called = (name, input) =>
  `${name}(${(typeof input === 'string' ? JSON.parse(input) : input).city})`;

/** The texts of a stream's events together. */
export async function textOf(events, text) {
  let all = '';
  for await (const event of events) all += text(event) ?? '';
  return all;
}
