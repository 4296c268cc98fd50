import type { Example } from './sdk-examples.ts';

/** Programs for the socket of a URL. They read the URL without its path from the environment, like the programs for calls. */
export function socketExamples(protocol: 'responses' | 'realtime', path: string, model: string): Example[] {
  if (protocol === 'responses') return [wscat(path, { type: 'response.create', model, input: 'Hello' })];
  const response = { instructions: 'Say hello.', output_modalities: ['text'] };
  const realtime = wscat(`${path}?model=${encodeURIComponent(model)}`, { type: 'response.create', response });
  return [realtime, python(path.replace(/\/realtime$/, ''), model)];
}

/** Sends an event, and prints the events of ten seconds. */
const wscat = (address: string, event: object): Example => ({
  name: 'A socket, with wscat',
  code: `npx -y wscat@6 -c "ws\${PRESIGN_URL#http}"${quoted(address)} -w 10 \\\n  -x ${quoted(JSON.stringify(event))}`,
});

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

const python = (base: string, model: string): Example => ({
  name: 'Python, package openai[realtime]',
  code: `import os
from openai import OpenAI

client = OpenAI(base_url=os.environ["PRESIGN_URL"] + ${JSON.stringify(base)}, api_key="unused")
with client.realtime.connect(model=${JSON.stringify(model)}) as connection:
    connection.response.create(response={"output_modalities": ["text"], "instructions": "Say hello."})
    for event in connection:
        if event.type == "response.output_text.done":
            print(event.text)
        elif event.type == "error":
            raise SystemExit(event.error.message)
        elif event.type == "response.done":
            break`,
});
