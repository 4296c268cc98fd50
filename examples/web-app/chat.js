/**
 * Asks the model and yields its answer piece by piece. The page runs this as it stands.
 * @param {string} url what the backend issued
 * @param {string} content
 * @returns {AsyncGenerator<string, void, undefined>}
 */
export async function* chat(url, content) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ stream: true, messages: [{ role: 'user', content }] }),
  });
  if (!answer.ok || !answer.body) {
    const { error } = /** @type {{ error: { message: string } }} */ (await answer.json());
    throw new Error(error.message);
  }
  const decoder = new TextDecoder();
  const reader = answer.body.getReader();
  let unread = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (unread + decoder.decode(value, { stream: true })).split('\n');
    unread = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: {')) yield pieceIn(line.slice(6));
  }
}

/** @param {string} event one event of a chat completion's stream, as JSON */
function pieceIn(event) {
  return JSON.parse(event).choices[0]?.delta.content ?? '';
}
