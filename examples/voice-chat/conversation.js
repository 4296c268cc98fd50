/**
 * @typedef {object} Listener
 * @property {() => void} heardSpeech someone speaks: an answer that still plays is to stop
 * @property {(words: string) => void} words a piece of the transcript of an answer
 * @property {(samples: Int16Array) => void} sound a piece of an answer, 24,000 samples a second
 * @property {() => void} answered an answer has ended
 * @property {(why: string) => void} refused an answer is refused, or the socket has closed
 */

/** A conversation over one socket. The page runs this as it stands. */
export class Conversation {
  #url;
  #socket;

  /**
   * Opens the socket. The API hears when a speech ends, and the gateway begins the answer, so there is no more to send than sound.
   * @param {string} url issued by the backend
   * @param {Listener} listener
   */
  constructor(url, listener) {
    this.#url = url;
    this.#socket = new WebSocket(`${url.replace(/^http/, 'ws')}?model=gpt-realtime`);
    this.opened = new Promise((resolve, reject) => {
      this.#socket.onopen = resolve;
      this.#socket.onerror = () => reject(new Error('The gateway was not reached.'));
    });
    this.#socket.onmessage = ({ data }) => hear(JSON.parse(data), listener);
    this.#socket.onclose = ({ code, reason }) => listener.refused(`The socket closed: ${reason || code}`);
  }

  /** @param {Int16Array} samples 24,000 a second */
  speak(samples) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    const audio = btoa(String.fromCharCode(...bytes));
    this.#socket.send(JSON.stringify({ type: 'input_audio_buffer.append', audio }));
  }

  /**
   * The limits of the URL, and what was used. To ask costs no use.
   * @returns {Promise<{ max_uses: number, used: number, cost_limit: number, spent: number }>}
   */
  async left() {
    const answer = await fetch(this.#url.replace('/v1/realtime', ''));
    const status = /** @type {any} */ (await answer.json());
    if (!answer.ok) throw new Error(status.error.message);
    return status;
  }

  close() {
    this.#socket.onclose = null;
    this.#socket.close();
  }
}

/**
 * @param {any} event
 * @param {Listener} listener
 */
function hear({ type, delta, error }, listener) {
  if (type === 'input_audio_buffer.speech_started') listener.heardSpeech();
  if (type === 'response.output_audio_transcript.delta') listener.words(delta);
  if (type === 'response.output_audio.delta')
    listener.sound(new Int16Array(Uint8Array.from(atob(delta), (each) => each.charCodeAt(0)).buffer));
  if (type === 'response.done') listener.answered();
  if (type === 'error') listener.refused(error.message);
}
