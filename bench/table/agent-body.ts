/**
 * A chat request as coding agents send it: instructions, definitions of tools, and turns of calls and their results, which are code
 * with line breaks, quotes and a few characters beyond ASCII.
 * @param bytes its size as JSON, to a few bytes
 * @param words of the turns; others have another prefix
 */
export function agentBody(bytes: number, words = 'the quick brown fox'): string {
  const tools = Array.from({ length: Math.max(2, Math.min(24, Math.floor(bytes / 3_000))) }, (_, i) =>
    tool(i),
  );
  const messages: object[] = [{ role: 'system', content: prose(Math.min(6_000, bytes / 8), words) }];
  const body = { model: 'gpt-4o-mini', max_tokens: 500, messages, tools };
  let left = bytes - JSON.stringify(body).length;
  for (let turn = 0; left > 0; turn++) {
    const round = turnOf(turn, left, words);
    messages.push(...round);
    left = bytes - Buffer.byteLength(JSON.stringify(body));
  }
  return JSON.stringify(body);
}

function turnOf(turn: number, left: number, words: string): object[] {
  const id = `call_${String(turn).padStart(8, '0')}`;
  const args = JSON.stringify({ path: `src/part-${turn}.ts`, limit: 200, offset: turn });
  const call = { id, type: 'function', function: { name: `tool_${turn % 12}`, arguments: args } };
  const result = { role: 'tool', tool_call_id: id, content: '' };
  const asked = { role: 'assistant', content: prose(160, words), tool_calls: [call] };
  const room = left - Buffer.byteLength(JSON.stringify([asked, result]));
  if (room < 200) return [{ role: 'user', content: 'x'.repeat(Math.max(1, left - 30)) }];
  return [asked, { ...result, content: code(Math.min(2_400, room / 1.1), turn) }];
}

const tool = (index: number): object => ({
  type: 'function',
  function: {
    name: `tool_${index}`,
    description: prose(500, 'Reads a file of the project, and returns its lines with their numbers.'),
    parameters: {
      type: 'object',
      additionalProperties: false,
      required: ['path'],
      properties: {
        path: { type: 'string', description: 'The path of the file, from the root of the project' },
        offset: { type: 'integer', minimum: 0, description: 'The first line' },
        limit: { type: 'integer', minimum: 1, maximum: 2_000, description: 'The most lines' },
        kind: { type: 'string', enum: ['text', 'image', 'notebook'] },
      },
    },
  },
});

const prose = (length: number, words: string): string =>
  `${words}. `.repeat(Math.ceil(length / (words.length + 2))).slice(0, length);

function code(length: number, seed: number): string {
  const line = (i: number) =>
    `${String(i).padStart(6)}→  const value${seed}_${i} = read("file-${i}.json") ?? { is: 'none' };\n`;
  let text = '';
  for (let i = 0; text.length < length; i++) text += line(i);
  return text.slice(0, length);
}

/** A chat of so many bytes whose text can be counted in tokens. */
export function chatBody(bytes: number): string {
  const messages: object[] = [];
  const body = { model: 'gpt-4o-mini', max_tokens: 500, messages };
  for (let turn = 0; ; turn++) {
    const left = bytes - JSON.stringify(body).length;
    if (left < 200) return JSON.stringify(body);
    const words = `In turn ${turn} a spend limit is a hard cap, whoever calls and however often`;
    const content = prose(Math.min(2_000, left - 60), words);
    messages.push({ role: turn % 2 === 0 ? 'user' : 'assistant', content });
  }
}
