// Has turns on the socket of a URL with OpenAI's agents, and prints a line for each.
import { RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { z } from 'zod';

const url = `${process.env.PRESIGNED_URL.replace('http', 'ws')}?model=gpt-realtime`;
const weather = tool({
  name: 'weather',
  description: 'Says how the weather is',
  parameters: z.object({ city: z.string() }),
  execute: async (given) => {
    console.log(`weather ${JSON.stringify(given)}`);
    return 'rain';
  },
});
const session = new RealtimeSession(new RealtimeAgent({ name: 'Guide' }), {
  transport: 'websocket',
  model: 'gpt-realtime',
});

const ends = [];
let onEnd = () => {};
const end = (line) => {
  ends.push(line);
  onEnd();
};
let samples = 0;
session.on('audio', ({ data }) => {
  samples += data.byteLength / 2;
});
session.on('transport_event', (event) => {
  if (event.type !== 'response.output_audio_transcript.done') return;
  end(samples < 24_000 ? 'The answer had no sound.' : event.transcript);
  samples = 0;
});
session.on('error', ({ error }) => end(error.error.message));

async function answer() {
  while (ends.length === 0)
    await new Promise((resolve) => {
      onEnd = resolve;
    });
  console.log(ends.shift());
}

await session.connect({ apiKey: 'unused', url });
session.sendMessage('Hello');
await answer();

const speech = Int16Array.from({ length: 40_800 }, (_, at) => (at < 24_000 ? 8_000 * Math.sin(at / 20) : 0));
session.sendAudio(speech.buffer);
await answer();

await session.updateAgent(new RealtimeAgent({ name: 'Guide', tools: [weather] }));
session.sendMessage('Oslo');
await answer();
session.sendMessage('And again');
await answer();
session.close();
