// Has turns on the socket of a URL with the class of OpenAI's SDK that SOCKET names, and prints a line for each.
import OpenAI from 'openai';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

const { PRESIGNED_URL: url, SOCKET } = process.env;
const client = new OpenAI({ baseURL: url.replace('/realtime', ''), apiKey: 'unused' });
const Socket = { OpenAIRealtimeWS, OpenAIRealtimeWebSocket }[SOCKET];
const socket = new Socket({ model: 'gpt-realtime' }, client);

const events = [];
let onEvent = () => {};
socket.on('event', (event) => {
  events.push(event);
  onEvent();
});
// Without a listener it throws; the event says the same.
socket.on('error', () => {});

/** The next event of these kinds. */
async function next(...types) {
  for (;;) {
    const event = events.shift();
    if (event === undefined)
      await new Promise((resolve) => {
        onEvent = resolve;
      });
    else if (types.includes(event.type)) return event;
  }
}

async function answer() {
  const event = await next('response.done', 'error');
  if (event.type === 'error') return event.error.message;
  const [item] = event.response.output;
  if (item.type === 'function_call') return `${item.name} ${item.arguments}`;
  return item.content[0].transcript;
}

const add = (item) => socket.send({ type: 'conversation.item.create', item });
const say = (text) => add({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });
async function ask() {
  socket.send({ type: 'response.create' });
  console.log(await answer());
}

await next('session.updated');
say('Hello');
await ask();

const speech = Int16Array.from({ length: 24_000 }, (_, at) => 8_000 * Math.sin(at / 20));
const sound = Buffer.concat([Buffer.from(speech.buffer), Buffer.alloc(33_600)]);
socket.send({ type: 'input_audio_buffer.append', audio: sound.toString('base64') });
console.log(await answer());

const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tools = [{ type: 'function', name: 'weather', parameters }];
socket.send({ type: 'session.update', session: { type: 'realtime', tools } });
say('Oslo');
await ask();
add({ type: 'function_call_output', call_id: 'any', output: 'rain' });
await ask();
await ask();
socket.close();
